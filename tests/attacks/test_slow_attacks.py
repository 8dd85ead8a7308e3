"""Attacks by code that hang or fill the memory until a limit ends them."""

GROUP = "slow"


def test_an_attack_gains_nothing(attack, comes_to_nothing):
    comes_to_nothing(attack)
