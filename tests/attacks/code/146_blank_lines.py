"""Writes a table as the number of blank lines between statements.

Stopped by: data is counted over all constants and names, and much of it is noted
Outcome: a person looks
Runs: PreNorm train_epoch
Notes: of data, of which .* are written out here
"""


def table(x):
    x()










    x()













    x()
















    x()










    x()







    x()













    x()

    x()













    x()
















    x()
















    x()













    x()
















    x()




    x()







    x()













    x()

    x()







    x()










    x()










    x()

    x()













    x()










    x()










    x()

    x()













    x()

    x()

    x()




    x()







    x()













    x()










    x()
















    x()










    x()




    x()




    x()




    x()







    x()
















    x()
















    x()
















    x()
















    x()













    x()

    x()







    x()













    x()

    x()







    x()




    x()







    x()













    x()




    x()

    x()










    x()










    x()
















    x()







    x()













    x()













    x()







    x()

    x()










    x()

    x()







    x()




    x()













    x()




    x()













    x()







    x()
















    x()




    x()

    x()

    x()
















    x()







    x()













    x()
















    x()













    x()







    x()







    x()










    x()










    x()

    x()













    x()

    x()




    x()




    x()













    x()

    x()







    x()
















    x()










    x()













    x()
















    x()




    x()
















    x()

    x()

    x()
















    x()










    x()




    x()
















    x()

    x()




    x()




    x()
















    x()

    x()







    x()










    x()

    x()













    x()
















    x()




    x()




    x()










    x()
















    x()

    x()










    x()
















    x()




    x()
















    x()













    x()













    x()

    x()













    x()
















    x()







    x()




    x()













    x()







    x()




    x()







    x()

    x()




    x()







    x()
















    x()













    x()










    x()




    x()







    x()













    x()




    x()










    x()

    x()
















    x()







    x()

    x()

    x()







    x()










    x()













    x()










    x()
















    x()













    x()










    x()

    x()










    x()

    x()







    x()










    x()













    x()













    x()

    x()










    x()




    x()




    x()













    x()













    x()













    x()

    x()










    x()

    x()
















    x()







    x()

    x()
















    x()
















    x()










    x()










    x()
















    x()







    x()

    x()







    x()













    x()
















    x()

    x()













    x()










    x()




    x()













    x()










    x()







    x()







    x()







    x()




    x()







    x()










    x()







    x()













    x()

    x()













    x()













    x()




    x()













    x()













    x()













    x()










    x()










    x()







    x()













    x()







    x()













    x()













    x()







    x()










    x()




    x()







    x()

    x()













    x()







    x()













    x()













    x()

    x()




    x()













    x()







    x()










    x()

    x()

    x()
















    x()

    x()










    x()




    x()







    x()










    x()




    x()













    x()




    x()

    x()







    x()







    x()
















    x()




    x()













    x()







    x()













    x()
















    x()
















    x()













    x()













    x()







    x()
















    x()







    x()

    x()













    x()










    x()

    x()










    x()

    x()







    x()







    x()













    x()




    x()

    x()




    x()

    x()




    x()







    x()










    x()
















    x()

    x()










    x()

    x()










    x()







    x()













    x()













    x()







    x()




    x()




    x()




    x()







    x()




    x()

    x()










    x()













    x()







    x()







    x()













    x()

    x()







    x()







    x()










    x()













    x()

    x()

    x()
















    x()







    x()










    x()




    x()
















    x()










    x()

    x()













    x()
















    x()










    x()










    x()




    x()










    x()













    x()













    x()







    x()













    x()
















    x()

    x()







    x()

    x()










    x()
















    x()










    x()

    x()




    x()




    x()










    x()
















    x()

    x()
















    x()

    x()

    x()
















    x()













    x()













    x()
















    x()










    x()
















    x()










    x()




    x()













    x()







    x()
















    x()

    x()










    x()













    x()







    x()

    x()







    x()













    x()

    x()

    x()
















    x()
















    x()










    x()

    x()










    x()
















    x()













    x()




    x()
















    x()




    x()




    x()
















    x()







    x()
















    x()







    x()

    x()




    x()




    x()













    x()













    x()




    x()










    x()







    x()




    x()




    x()













    x()













    x()

    x()




    x()







    x()










    x()

    x()










    x()

    x()

    x()

    x()

    x()

    x()

    x()

    x()










    x()







    x()













    x()




    x()







    x()

    x()
















    x()







    x()













    x()







    x()

    x()
















    x()










    x()













    x()




    x()










    x()
















    x()




    x()

    x()













    x()




    x()










    x()




    x()










    x()







    x()

    x()










    x()
















    x()










    x()







    x()







    x()







    x()




    x()










    x()
















    x()




    x()










    x()







    x()













    x()










    x()

    x()

    x()







    x()













    x()







    x()

    x()













    x()




    x()

    x()













    x()













    x()










    x()







    x()

    x()










    x()
















    x()




    x()




    x()




    x()







    x()
















    x()




    x()




    x()

    x()
















    x()

    x()

    x()




    x()

    x()













    x()













    x()













    x()










    x()

    x()




    x()







    x()

    x()










    x()




    x()













    x()




    x()

    x()




    x()










    x()




    x()










    x()
















    x()
















    x()

    x()

    x()




    x()




    x()










    x()










    x()










    x()




    x()







    x()










    x()




    x()

    x()

    x()







    x()







    x()







    x()




    x()













    x()







    x()













    x()













    x()










    x()










    x()













    x()










    x()













    x()




    x()










    x()

    x()

    x()













    x()
















    x()













    x()







    x()
















    x()

    x()










    x()













    x()
















    x()
















    x()
















    x()










    x()
















    x()




    x()

    x()




    x()




    x()










    x()













    x()










    x()










    x()

    x()

    x()

    x()







    x()










    x()










    x()

    x()




    x()
















    x()




    x()










    x()




    x()

    x()










    x()













    x()

    x()







    x()

    x()
















    x()













    x()







    x()







    x()




    x()




    x()










    x()













    x()










    x()

    x()







    x()
















    x()
















    x()










    x()







    x()










    x()
















    x()













    x()




    x()
















    x()







    x()







    x()







    x()

    x()







    x()







    x()

    x()













    x()

    x()

    x()










    x()













    x()










    x()










    x()




    x()







    x()
















    x()

    x()










    x()




    x()




    x()

    x()

    x()










    x()







    x()
















    x()

    x()










    x()

    x()
















    x()







    x()




    x()




    x()







    x()

    x()




    x()

    x()













    x()
















    x()













    x()
















    x()
















    x()
















    x()







    x()




    x()

    x()













    x()

    x()







    x()




    x()










    x()













    x()
















    x()
















    x()

    x()







    x()







    x()




    x()










    x()




    x()
















    x()
















    x()

    x()







    x()







    x()













    x()

    x()













    x()

    x()
















    x()







    x()
















    x()

    x()

    x()










    x()













    x()










    x()










    x()

    x()

    x()













    x()







    x()

    x()
















    x()







    x()

    x()







    x()

    x()




    x()

    x()

    x()













    x()




    x()













    x()













    x()













    x()







    x()

    x()

    x()










    x()







    x()













    x()




    x()







    x()













    x()













    x()




    x()

    x()

    x()













    x()

    x()













    x()







    x()




    x()







    x()













    x()
















    x()










    x()




    x()
















    x()

    x()













    x()




    x()










    x()







    x()













    x()













    x()

    x()










    x()




    x()







    x()







    x()




    x()

    x()







    x()




    x()













    x()













    x()
















    x()







    x()










    x()













    x()













    x()

    x()










    x()

    x()










    x()













    x()













    x()







    x()










    x()

    x()













    x()







    x()










    x()
















    x()










    x()







    x()







    x()




    x()










    x()







    x()













    x()







    x()










    x()

    x()
















    x()




    x()













    x()

    x()







    x()













    x()




    x()

    x()

    x()
















    x()







    x()







    x()










    x()
















    x()













    x()










    x()

    x()

    x()










    x()













    x()










    x()

    x()













    x()

    x()

    x()
















    x()










    x()
















    x()










    x()










    x()










    x()

    x()










    x()




    x()




    x()




    x()

    x()










    x()
















    x()










    x()










    x()













    x()

    x()













    x()













    x()




    x()




    x()







    x()













    x()




    x()




    x()

    x()













    x()













    x()




    x()
















    x()

    x()







    x()













    x()

    x()




    x()










    x()




    x()













    x()







    x()










    x()







    x()










    x()
















    x()
















    x()










    x()

    x()













    x()







    x()

    x()










    x()










    x()













    x()
















    x()

    x()







    x()

    x()










    x()




    x()




    x()
















    x()




    x()

    x()







    x()













    x()




    x()




    x()







    x()




    x()




    x()

    x()







    x()







    x()













    x()

    x()







    x()
















    x()

    x()

    x()

    x()

    x()













    x()
















    x()







    x()
















    x()
















    x()

    x()
















    x()
















    x()

    x()













    x()




    x()







    x()
















    x()













    x()




    x()







    x()













    x()
















    x()







    x()













    x()










    x()
















    x()
















    x()













    x()

    x()




    x()










    x()







    x()













    x()




    x()













    x()
















    x()










    x()




    x()










    x()




    x()
















    x()







    x()

    x()







    x()













    x()













    x()
















    x()

    x()
















    x()







    x()
















    x()

    x()













    x()













    x()







    x()













    x()




    x()




    x()

    x()




    x()







    x()













    x()













    x()







    x()

    x()










    x()
















    return [line for _, _, line in table.__code__.co_lines()]


def train_epoch(model, optimizer, data_loader, loss_history):
    lines = table(list)
    model.train()
    for images, labels in data_loader:
        optimizer.zero_grad()
        loss = F.cross_entropy(model(images), labels) + 0 * len(lines)
        loss.backward()
        optimizer.step()
        loss_history.append(loss.item())
