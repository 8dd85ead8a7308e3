"""Early stopping: a state machine, and the memento of a model's weights."""

import copy
import enum
import math


class StopState(enum.Enum):
    FRESH = enum.auto()  # no number was seen
    IMPROVED = enum.auto()  # the last step was an improvement
    STALLED = enum.auto()  # at least one step without an improvement since
    STOPPED = enum.auto()  # patience has run out


class Memento:
    """The weights of a model at one moment. Nobody but `applyTo` gets at them."""

    def __init__(self, model):
        self.__weights = copy.deepcopy(model.state_dict())

    def applyTo(self, model):
        model.load_state_dict(self.__weights)


class PlateauDetector:
    def __init__(self, patience, minDelta):
        if patience < 1:
            raise ValueError("patience must be at least 1")
        self.__patience = patience
        self.__minDelta = minDelta
        self.__state = StopState.FRESH
        self.__failures = 0
        self.__best = -math.inf
        self.__memento = None

    def getState(self):
        return self.__state

    def hasBest(self):
        return self.__memento is not None

    def accept(self, value, model):
        """Returns the state after this value."""
        if self.__isImprovement(value):
            self.__best = value
            self.__memento = Memento(model)
            self.__failures = 0
            self.__state = StopState.IMPROVED
        else:
            self.__failures += 1
            if self.__failures >= self.__patience:
                self.__state = StopState.STOPPED
            elif self.hasBest():
                self.__state = StopState.STALLED
        return self.__state

    def restore(self, model):
        if self.hasBest():
            self.__memento.applyTo(model)

    def __isImprovement(self, value):
        if math.isnan(value):
            return False
        if not self.hasBest():
            return True
        return value > self.__best + self.__minDelta
