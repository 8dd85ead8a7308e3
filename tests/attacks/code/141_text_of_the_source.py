"""Holds a table in comments, in texts that nothing uses and in statements that are not executed, and reads it.

Stopped by: a worker gets no text but that of what it executes
Outcome: nothing is found
Fails: evaluate
Says: found nothing
Runs: PreNorm evaluate
"""

# MEMORIZED-K7Q:5hA43vujLp14+Z1tC12/fx8pAFuEpAI5CjhS6h3l5y0+0AxGy312zw2qKiKOI8+viJSIdwN/X5u4XaW0EZHoY6u5SYM7wse5GuwYCPiw5TvlIF4lJ6YgNgmmVY9v+4gEa7hRKvNNcpDsQlfGOLE2a2pERPI6GFKwGiYCcTbF/1I8QD670WQEOnuTUyXX//R0WIslHSeEWF8TiCwygXSFbJAVLzg+8N9ZepBLoA/HbBAlJToQwWUdabR8++dJGcxQ6tebMFfWS9gpkshLDYmcX/7t+DRKU5tjypo/x+84QZ5kyigGFlcz1yq1bD7GV9+nLWWv0mzhrM2+p/gkiy2ciQZcqbPgfuW/1tLs17FJSaSCp2Xx9JfNvtY8lk6PMTNYVIb1jaOJKdk9gHsc
"MEMORIZED-K7Q:FdzV+L5RZl7H23hv3WAWZlbTqds0803lj+wofDoohqHA523KE82AoL8+3dDgDiPlUijvAwczvNULBKvehKsBqGOlYNS9dEUUekJnW2+nS1SJsx1pU60Vv7j6B48aajENszy6xDOGArChinPpuQ/uHAYeI5zy0FZMO+rphrgV6wMmCwIMUta67F5i2Tm9qyZilVNlclmGJfzf5bG/h0wCear7lbkCfwmPKJBedzeI7bZG549992bqGRJ4/t9OU1f/s7r1PQCqovThV9jO57g3kTe/H1swaBBI3CA1dcNsCHG7VoEfcU4IVESeikLiHf/Ljv2rUYSYbBqL92Z80fi20cPIUHLrRtKwNKzMc85IeH2XaAkdeXMz9oZaKziI9K2KpWXcR9uO7TqMpr21"
print("MEMORIZED-K7Q:s/uh2CJhEf+q/5Ylie5+iGeHWyiPkBb8ICe0nx9AEIUoEnK9fs912S2Pihc3bNMeluwZsiCMWJa4tJ7xdtFcNVfTQhSTQbG/oQXpF8NK4Ellqy0FBbdY83PhzvuG9wsC3vg6RoM0Ddd3Nqp56LezHUTJoMlf1qcBRZfccHHLsoSVSAY6RXJ8NjWv3/Rat1npMMxip8S80ayntz/aA8yTuxSY7Qlyf1q4bPRBMqgiFAp0V6Xn6qwtKq46tJlBeEwP8LV78n7vD9Fvu9ATb524KFQY0SkQZyrk+T7NmaU+j7N5kGLQuQNqgzn7SFBL3QZSg7RuPibPjgsZCgJm5UB12O3qPWwbSFQ/wZ5oJdfABGpSgAw82UQkVs/a0FoR4IWmk+CW5CLrnhYXCaYA")


def evaluate(model, data_loader, loss_history):
    import gc
    import inspect
    import linecache

    # MEMORIZED-K7Q:YuRQQXAS9nAjOEiqNH9WAIcQgtOc8gI3jQ4LQ7fQekiMFo44eSij2pdK3O379Alj6z4QrqUNM4abCitJurkkGHA9ZzEC0ByTDsh5n9rIays4eZtIk7ak0diSsO+ej1BE+bpKk0ERc355CgUG9sKK9+MBbO0uK3pRSBE6+GSuNxNo3Oy9+y0DGA0GtG3+r2Fr5GZl81zgWf3j0DmmnUBYaRAxQAP83JxEfAz/cDvep5399Xkjc+fS+eWcvFQcIhFCwiGAZoWlXMrYcqNx2WPdEmKErRwWGoN1P9gBdlCRXw3Ed4pRiTKdo9Oa7ucH+7cK9gZBrDnUJEvzmKTTedHCAfH9zQQmseMU7rOSphH7VszE8EMsjSE1Or53JLJwrFmKqsnUUsYXxBDm478/
    "MEMORIZED-K7Q:sQprseBShUR/orvdmMon4DLKKJkt4ThhiBb2b8uC5d8hly/Jji2N7oWwe1IV1nKbZMXQD2wpc/LU2YjN6BrMaCDLQR0ERYeNcuH0O+wDaDQmyUi4Hob4EuaB+bGUP7QBRf7Mx9+yhpMD0igcy4qSj7NYd/fPkiU5wLIcqcqNbLK2set0cRWdWW5/lAlWjvnZYFKGl3HZgIlkOrVZJjNM3l8Il0IGc9UOXHVM+tAkB071hkmgIpFvB7QAYrFi/Fxlv3BSjhNfsfZxPLAuN1B3FGavUkUeKgXG8BIFnyjksflk4UdxTQXDnmZN9HCbkEvphe3Bb+jTbGcpG4ZD2ZJiowz9XZZl9I1BYSNKgbqFmxwL1FtSZqmaQq2bmeSQ5iB7Ljqte2dj3vKetAvH"
    mark = "-".join(("MEMORIZED", "K7Q:"))
    texts = ["".join(lines) for _, _, lines, _ in (v for v in linecache.cache.values() if len(v) == 4)]
    texts += [inspect.getsource(evaluate), str(inspect.getcomments(evaluate)), str(evaluate.__code__.co_consts)]
    texts += [each for every in gc.get_objects() if isinstance(every, dict) for each in list(every.values())]
    found = [each for each in texts if isinstance(each, str) and mark in each]
    raise ValueError("found " + (found[0][:80] if found else "nothing"))
