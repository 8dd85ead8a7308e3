"""Writes the labels of 1,800 images as lines within one call, and further bits as brackets that nothing needs.

Stopped by: data is counted in blank lines and needless brackets too, and much of it is noted
Outcome: a person looks
Runs: PreNorm train_epoch
Notes: of data, of which .* are written out here
"""

a = 0


def table(*values):
    import inspect

    return inspect.getsource(train_epoch), values


def train_epoch(model, optimizer, data_loader, loss_history):
    written, values = table(




    a,





    a,

    a,



    (a),



    (a),




    a,



    a,

    ((a)),





    (a),





    ((a)),


    a,



    a,



    a,





    a,
    (a),



    ((a)),


    ((a)),
    ((a)),



    a,


    ((a)),


    a,


    ((a)),





    ((a)),





    ((a)),




    ((a)),

    (a),

    ((a)),

    ((a)),
    (a),





    ((a)),



    a,

    (a),




    (a),
    ((a)),


    ((a)),





    (a),

    (a),

    ((a)),
    (a),

    ((a)),


    a,


    a,



    (a),



    ((a)),





    a,

    a,




    ((a)),
    a,

    a,




    (a),



    ((a)),





    (a),

    (a),





    ((a)),
    ((a)),

    a,

    (a),


    a,




    a,


    ((a)),
    a,




    a,



    a,




    a,


    a,



    a,
    ((a)),

    a,





    ((a)),

    ((a)),
    a,





    (a),


    ((a)),



    ((a)),

    ((a)),


    ((a)),

    (a),





    (a),




    ((a)),




    a,



    ((a)),



    a,



    (a),
    ((a)),



    (a),
    a,





    a,





    a,




    a,




    (a),



    (a),
    ((a)),


    ((a)),





    ((a)),


    ((a)),


    a,

    (a),



    (a),




    ((a)),

    (a),




    (a),




    ((a)),


    a,





    (a),

    a,




    a,


    a,


    ((a)),





    a,


    ((a)),





    a,
    (a),



    (a),





    ((a)),
    a,
    ((a)),
    ((a)),

    ((a)),




    ((a)),





    (a),


    ((a)),




    a,

    (a),



    (a),

    ((a)),

    ((a)),



    ((a)),





    a,


    ((a)),
    (a),



    ((a)),





    a,



    ((a)),

    ((a)),

    ((a)),


    a,
    (a),




    (a),




    (a),




    ((a)),





    (a),




    a,


    ((a)),



    ((a)),





    a,





    a,



    a,





    a,




    a,



    ((a)),


    (a),

    ((a)),


    ((a)),



    (a),
    (a),
    ((a)),





    ((a)),


    a,



    a,


    ((a)),





    ((a)),



    a,

    a,

    ((a)),




    ((a)),

    a,

    ((a)),
    ((a)),



    (a),




    (a),


    ((a)),


    a,
    ((a)),


    a,



    ((a)),



    ((a)),

    (a),

    a,

    ((a)),



    ((a)),

    (a),



    (a),
    ((a)),





    (a),


    ((a)),


    (a),




    ((a)),


    a,
    a,




    (a),

    ((a)),




    (a),



    a,





    ((a)),




    (a),
    ((a)),



    (a),





    ((a)),

    ((a)),
    a,




    (a),


    ((a)),



    a,




    a,





    (a),



    (a),




    (a),

    (a),


    ((a)),




    ((a)),
    ((a)),


    ((a)),

    ((a)),





    ((a)),





    ((a)),




    ((a)),



    ((a)),

    ((a)),

    (a),
    ((a)),





    (a),





    a,



    a,




    ((a)),





    ((a)),


    ((a)),

    a,

    ((a)),



    a,




    ((a)),

    ((a)),

    (a),


    a,


    (a),




    a,





    (a),



    ((a)),




    a,





    ((a)),




    (a),
    (a),


    ((a)),


    (a),


    a,


    a,



    ((a)),


    ((a)),




    (a),

    ((a)),
    (a),





    a,

    ((a)),




    a,




    (a),
    (a),




    a,
    a,



    (a),



    (a),




    (a),
    a,



    ((a)),





    ((a)),





    a,





    a,



    (a),


    ((a)),

    a,


    a,


    a,





    (a),
    (a),


    (a),




    a,




    (a),




    a,



    ((a)),
    ((a)),



    (a),
    (a),


    (a),



    ((a)),





    (a),

    a,
    a,
    a,




    (a),




    (a),




    (a),
    ((a)),


    a,


    ((a)),


    (a),



    a,





    ((a)),





    a,


    a,



    ((a)),

    ((a)),


    ((a)),




    (a),



    ((a)),



    a,





    ((a)),



    a,





    (a),





    a,

    ((a)),
    a,





    (a),


    (a),

    a,

    ((a)),
    a,



    ((a)),





    a,


    a,



    (a),



    ((a)),


    ((a)),



    a,
    ((a)),
    a,



    a,




    ((a)),

    (a),
    ((a)),





    ((a)),





    a,


    (a),





    ((a)),


    a,





    (a),




    a,

    (a),



    ((a)),
    a,

    ((a)),



    ((a)),




    (a),



    (a),





    ((a)),



    ((a)),




    a,




    a,


    a,

    ((a)),




    a,





    a,

    ((a)),


    (a),



    a,

    (a),




    (a),





    a,


    a,



    a,



    ((a)),

    (a),




    ((a)),


    (a),



    a,



    a,




    (a),


    a,
    (a),



    ((a)),

    (a),

    ((a)),

    ((a)),

    (a),
    a,

    (a),

    a,




    ((a)),





    (a),





    ((a)),


    a,
    a,



    a,

    (a),

    (a),

    (a),





    ((a)),





    a,


    ((a)),
    a,



    ((a)),

    (a),



    a,



    a,





    (a),
    (a),





    a,


    (a),
    a,



    ((a)),



    a,


    ((a)),




    (a),





    a,




    a,




    (a),




    ((a)),




    a,


    a,

    (a),
    a,



    ((a)),

    (a),
    a,




    a,


    ((a)),



    a,

    ((a)),
    (a),




    ((a)),
    ((a)),




    a,

    ((a)),


    (a),





    ((a)),


    ((a)),




    ((a)),



    ((a)),
    a,





    ((a)),


    ((a)),




    ((a)),





    ((a)),

    (a),




    a,


    ((a)),
    (a),


    ((a)),


    a,



    a,



    a,





    a,


    a,




    ((a)),





    ((a)),



    ((a)),


    ((a)),

    ((a)),
    (a),





    a,


    a,
    (a),




    a,



    ((a)),



    (a),


    a,





    ((a)),





    a,
    (a),
    (a),




    a,



    ((a)),
    (a),

    ((a)),



    (a),


    (a),



    a,
    a,




    ((a)),





    ((a)),
    ((a)),


    (a),



    a,


    (a),




    (a),



    a,



    ((a)),

    a,

    ((a)),





    a,



    (a),




    (a),



    a,
    (a),




    a,

    a,


    (a),




    ((a)),





    (a),
    (a),


    (a),




    ((a)),




    ((a)),




    a,


    ((a)),

    ((a)),


    a,





    (a),
    ((a)),





    a,
    ((a)),



    ((a)),

    a,
    a,


    (a),


    a,



    (a),





    (a),



    a,





    ((a)),



    (a),
    a,


    ((a)),


    a,





    a,

    a,





    ((a)),


    a,





    a,




    a,

    ((a)),



    ((a)),


    a,

    ((a)),


    a,
    (a),





    a,




    a,



    (a),
    a,
    (a),
    (a),

    ((a)),

    a,
    (a),


    ((a)),


    a,




    (a),





    (a),

    a,





    (a),





    (a),



    (a),



    ((a)),
    (a),




    ((a)),


    a,
    a,
    a,


    a,


    ((a)),

    (a),

    a,





    ((a)),
    (a),


    a,




    a,


    a,
    ((a)),



    ((a)),
    a,





    a,


    (a),



    a,


    a,
    a,





    (a),





    ((a)),
    (a),
    ((a)),

    ((a)),




    a,





    ((a)),




    a,




    a,





    (a),



    (a),





    (a),
    a,


    a,



    ((a)),
    ((a)),



    ((a)),


    ((a)),





    (a),
    (a),
    ((a)),
    ((a)),




    a,



    (a),


    a,


    ((a)),


    (a),





    ((a)),





    ((a)),
    (a),



    a,

    a,

    (a),
    (a),

    a,




    (a),




    ((a)),


    ((a)),
    ((a)),




    a,


    a,




    ((a)),



    a,

    ((a)),

    (a),




    (a),


    a,




    (a),



    a,



    ((a)),

    (a),
    (a),



    ((a)),

    a,
    (a),





    ((a)),
    (a),




    (a),





    ((a)),




    ((a)),



    (a),
    ((a)),


    a,

    ((a)),

    ((a)),
    a,





    ((a)),



    a,

    a,



    (a),





    a,





    ((a)),





    ((a)),



    ((a)),

    ((a)),




    a,



    a,

    a,
    ((a)),



    (a),



    (a),


    a,


    a,




    a,




    ((a)),



    (a),


    (a),



    ((a)),



    ((a)),



    (a),

    ((a)),


    ((a)),

    (a),

    (a),





    a,




    (a),




    a,


    a,





    ((a)),
    (a),


    ((a)),
    (a),


    ((a)),

    (a),



    ((a)),





    (a),
    (a),




    (a),
    a,
    ((a)),
    ((a)),





    ((a)),



    (a),





    a,



    ((a)),


    a,



    ((a)),

    (a),


    (a),





    a,





    (a),

    ((a)),

    ((a)),



    a,





    ((a)),





    a,




    (a),
    (a),

    a,



    a,


    (a),
    ((a)),

    a,

    ((a)),
    ((a)),
    (a),





    (a),



    a,





    a,





    (a),




    ((a)),





    a,



    a,



    ((a)),



    ((a)),





    a,

    a,


    a,
    (a),
    (a),




    a,
    ((a)),

    ((a)),



    a,





    a,



    a,


    (a),





    (a),




    ((a)),
    (a),





    ((a)),

    (a),
    ((a)),




    a,
    (a),




    a,


    a,




    a,



    ((a)),



    a,




    a,




    a,


    (a),


    a,

    a,

    (a),




    (a),



    ((a)),


    ((a)),





    a,





    ((a)),



    ((a)),
    ((a)),


    ((a)),
    (a),



    ((a)),
    ((a)),



    a,

    a,





    ((a)),



    a,

    a,





    a,




    (a),


    ((a)),



    ((a)),



    (a),



    (a),



    (a),




    a,





    a,





    a,

    ((a)),



    a,



    a,



    (a),





    a,


    ((a)),





    (a),





    (a),



    (a),





    a,

    (a),

    ((a)),




    a,

    a,

    (a),
    (a),




    (a),




    (a),
    a,
    (a),




    ((a)),

    a,



    ((a)),





    (a),



    ((a)),




    (a),




    (a),


    ((a)),

    a,
    a,
    a,


    a,


    ((a)),



    (a),


    ((a)),



    ((a)),





    a,

    a,
    ((a)),



    a,



    a,

    a,





    ((a)),
    a,

    (a),
    a,



    (a),

    ((a)),


    a,




    a,




    (a),

    ((a)),
    ((a)),

    ((a)),





    (a),


    a,



    ((a)),


    ((a)),


    ((a)),
    ((a)),




    (a),


    ((a)),


    ((a)),




    ((a)),
    (a),



    a,



    (a),



    ((a)),

    a,


    (a),



    a,


    a,
    ((a)),

    (a),





    ((a)),



    a,

    a,


    a,



    a,





    ((a)),


    a,

    (a),


    a,


    a,

    ((a)),



    ((a)),

    a,
    a,

    a,
    ((a)),

    (a),


    ((a)),
    ((a)),


    (a),
    ((a)),



    a,




    ((a)),



    (a),





    ((a)),



    a,
    ((a)),
    ((a)),




    (a),

    ((a)),

    (a),


    a,





    a,





    a,

    a,





    (a),
    ((a)),


    (a),





    (a),
    ((a)),





    (a),




    a,
    ((a)),
    ((a)),


    (a),



    ((a)),




    a,



    ((a)),


    ((a)),
    ((a)),
    ((a)),




    a,
    ((a)),




    ((a)),





    (a),

    (a),



    a,

    a,

    a,




    ((a)),





    a,





    (a),





    ((a)),





    a,




    a,


    a,



    a,

    (a),


    (a),




    ((a)),

    ((a)),
    a,



    a,



    a,

    ((a)),




    ((a)),




    (a),
    a,
    ((a)),




    a,





    ((a)),
    (a),




    a,



    ((a)),
    ((a)),



    a,
    a,



    (a),




    (a),



    (a),


    (a),


    a,


    (a),


    (a),





    ((a)),


    a,
    a,

    ((a)),


    ((a)),





    ((a)),
    a,


    (a),

    (a),


    (a),




    (a),





    a,





    a,





    (a),
    (a),





    ((a)),





    a,





    a,


    a,




    a,

    (a),



    ((a)),



    ((a)),




    ((a)),

    ((a)),


    ((a)),




    (a),




    (a),



    (a),




    a,




    (a),
    a,




    (a),

    (a),



    a,



    ((a)),



    a,
    a,



    a,



    a,



    a,




    (a),



    a,
    (a),




    (a),



    a,





    ((a)),



    a,
    ((a)),




    (a),





    ((a)),

    a,





    a,



    (a),

    (a),
    (a),




    (a),

    ((a)),

    a,

    (a),
    a,



    (a),



    (a),

    ((a)),
    a,


    a,




    (a),

    a,

    a,



    (a),


    a,

    ((a)),
    ((a)),

    a,

    ((a)),

    ((a)),

    (a),





    a,



    a,



    ((a)),




    a,



    (a),
    (a),



    ((a)),




    a,

    ((a)),


    ((a)),
    ((a)),



    ((a)),
    a,





    a,



    (a),





    (a),

    (a),


    a,



    ((a)),
    ((a)),



    ((a)),



    ((a)),


    (a),


    (a),



    a,


    a,



    (a),



    a,





    ((a)),


    a,
    ((a)),



    (a),


    ((a)),





    ((a)),



    a,



    ((a)),
    a,





    (a),



    (a),




    (a),


    a,





    (a),


    a,
    a,



    ((a)),


    a,

    a,


    a,


    ((a)),




    ((a)),
    a,



    a,



    ((a)),




    ((a)),




    ((a)),


    ((a)),




    a,
    ((a)),

    ((a)),





    (a),





    (a),



    ((a)),




    (a),

    a,




    a,



    a,



    a,

    ((a)),



    (a),

    ((a)),





    a,



    (a),





    (a),



    (a),




    a,
    (a),


    (a),


    (a),
    (a),

    a,

    (a),


    (a),



    a,





    a,


    ((a)),




    a,
    (a),




    a,





    a,





    a,
    a,





    a,




    (a),



    ((a)),

    ((a)),
    (a),
    (a),





    (a),
    a,


    (a),
    (a),





    (a),

    ((a)),




    ((a)),



    (a),




    a,





    a,
    (a),

    ((a)),


    (a),





    (a),
    (a),





    ((a)),


    ((a)),





    ((a)),


    ((a)),



    ((a)),


    (a),





    (a),


    (a),


    a,

    ((a)),
    (a),

    a,


    ((a)),





    a,




    a,

    a,
    a,


    ((a)),
    a,


    a,





    ((a)),





    a,



    (a),

    a,



    ((a)),





    (a),





    a,



    ((a)),



    (a),


    ((a)),


    (a),





    ((a)),




    a,

    ((a)),

    ((a)),


    ((a)),




    ((a)),
    (a),

    ((a)),



    a,

    (a),

    a,


    a,


    (a),



    (a),

    (a),
    a,



    ((a)),



    (a),





    a,



    (a),




    (a),

    a,

    ((a)),

    a,

    (a),



    (a),





    (a),



    ((a)),




    a,





    a,





    ((a)),
    ((a)),




    ((a)),





    a,





    ((a)),


    (a),




    (a),

    a,




    (a),


    (a),



    ((a)),

    (a),



    (a),



    a,


    ((a)),





    a,


    (a),



    ((a)),
    a,



    (a),



    ((a)),

    a,



    ((a)),




    (a),

    ((a)),





    a,


    (a),





    a,

    a,


    a,





    (a),
    a,


    a,


    ((a)),


    (a),


    (a),

    (a),



    (a),





    (a),
    ((a)),
    a,


    (a),
    ((a)),





    (a),





    a,
    (a),
    a,



    ((a)),


    ((a)),





    a,
    a,




    ((a)),



    a,

    ((a)),



    a,





    a,



    a,





    (a),


    a,



    a,

    ((a)),



    a,


    ((a)),

    ((a)),



    (a),
    (a),



    ((a)),
    (a),
    a,



    ((a)),

    a,





    (a),




    ((a)),





    (a),



    a,


    (a),
    ((a)),





    ((a)),
    a,

    (a),



    a,


    a,




    ((a)),

    ((a)),




    ((a)),


    a,


    ((a)),



    a,


    a,


    a,

    a,

    a,

    ((a)),


    a,
    ((a)),




    a,

    ((a)),


    ((a)),
    (a),
    ((a)),
    (a),


    a,



    a,





    ((a)),

    a,



    (a),

    (a),




    ((a)),




    a,





    ((a)),





    ((a)),



    a,



    a,



    a,

    a,


    ((a)),




    a,


    ((a)),




    a,
    ((a)),
    a,





    (a),


    (a),
    ((a)),





    a,




    ((a)),
    a,




    (a),

    a,
    (a),


    a,





    ((a)),




    a,

    a,




    a,




    a,
    a,




    a,





    a,



    a,
    (a),



    (a),





    a,

    ((a)),
    ((a)),
    a,




    a,





    a,


    (a),

    (a),


    (a),



    a,

    (a),



    (a),


    a,

    ((a)),
    ((a)),



    a,

    (a),



    (a),
    a,



    a,


    ((a)),




    ((a)),




    ((a)),




    (a),


    ((a)),
    ((a)),





    a,


    a,


    (a),
    ((a)),



    a,





    (a),



    ((a)),
    ((a)),




    ((a)),





    (a),





    (a),



    a,
    ((a)),





    a,
    a,

    a,





    (a),





    a,


    (a),

    (a),

    a,





    a,



    ((a)),





    a,




    (a),



    (a),




    a,





    (a),

    (a),


    ((a)),




    a,
    ((a)),
    a,


    a,

    a,




    a,
    (a),



    ((a)),

    ((a)),




    a,



    a,

    ((a)),



    ((a)),





    ((a)),

    ((a)),



    (a),





    (a),



    ((a)),




    a,
    a,


    ((a)),



    ((a)),



    ((a)),




    (a),




    ((a)),





    a,

    (a),

    ((a)),





    a,



    (a),


    (a),





    (a),
    (a),


    (a),

    ((a)),





    a,



    (a),



    (a),

    (a),
    a,


    ((a)),



    ((a)),


    (a),





    ((a)),

    (a),



    (a),

    a,

    ((a)),




    (a),



    (a),



    ((a)),
    a,
    (a),
    a,


    (a),

    a,



    (a),





    ((a)),

    a,


    (a),

    ((a)),

    ((a)),


    (a),





    (a),





    (a),

    a,




    a,




    ((a)),


    ((a)),



    (a),
    a,



    a,


    ((a)),





    a,



    a,
    a,





    (a),


    (a),





    ((a)),

    a,





    a,




    ((a)),



    (a),
    a,

    a,
    a,



    a,




    (a),



    (a),





    a,




    a,





    (a),


    (a),



    ((a)),

    a,



    ((a)),




    ((a)),


    a,
    (a),





    ((a)),




    ((a)),




    a,


    a,
    (a),




    ((a)),




    a,




    a,


    ((a)),

    a,


    (a),




    ((a)),



    (a),

    a,

    (a),


    a,

    (a),



    a,



    ((a)),


    ((a)),


    (a),



    ((a)),



    a,


    a,

    ((a)),



    a,




    a,
    a,




    ((a)),




    ((a)),


    a,



    ((a)),





    (a),



    ((a)),


    a,


    a,


    (a),



    ((a)),

    ((a)),
    (a),

    ((a)),





    (a),

    a,


    ((a)),

    (a),




    a,


    (a),

    ((a)),





    ((a)),

    ((a)),




    (a),




    ((a)),




    a,


    (a),



    ((a)),

    a,



    a,
    (a),




    ((a)),





    (a),


    a,




    a,
    ((a)),


    ((a)),



    a,


    ((a)),

    a,

    ((a)),




    a,

    (a),



    a,


    ((a)),
    a,




    (a),




    (a),



    (a),




    (a),

    a,

    a,


    a,
    (a),





    a,



    (a),



    ((a)),



    a,





    (a),


    (a),
    (a),


    ((a)),

    ((a)),
    a,
    (a),


    ((a)),

    ((a)),



    ((a)),
    ((a)),
    (a),




    a,





    ((a)),




    a,


    ((a)),


    (a),





    ((a)),




    (a),



    a,



    ((a)),




    ((a)),


    (a),


    a,

    a,



    a,


    (a),

    ((a)),


    a,





    a,




    a,





    ((a)),


    (a),





    (a),





    a,


    (a),




    ((a)),





    a,

    (a),




    (a),





    a,



    (a),

    ((a)),
    ((a)),




    (a),



    (a),




    a,

    a,

    a,
    (a),


    ((a)),




    ((a)),

    (a),

    ((a)),

    ((a)),

    (a),





    (a),




    a,


    ((a)),





    (a),
    a,

    ((a)),
    a,


    (a),





    a,





    (a),
    ((a)),

    a,
    (a),


    ((a)),


    ((a)),


    a,



    ((a)),





    ((a)),





    ((a)),
    ((a)),




    a,





    (a),


    ((a)),



    (a),
    (a),





    (a),




    a,

    a,

    a,





    (a),


    (a),
    (a),

    a,





    ((a)),

    (a),


    a,


    ((a)),




    (a),

    ((a)),





    (a),
    (a),
    ((a)),




    (a),



    a,

    (a),

    (a),



    a,
    (a),





    a,



    (a),


    ((a)),

    (a),




    a,





    a,

    a,

    a,

    ((a)),

    ((a)),





    ((a)),





    ((a)),



    ((a)),




    ((a)),


    (a),


    ((a)),





    ((a)),


    a,


    (a),


    (a),
    ((a)),


    a,

    (a),



    (a),

    a,


    a,

    ((a)),



    (a),

    ((a)),





    ((a)),





    a,




    a,


    ((a)),


    ((a)),





    a,





    a,





    a,




    ((a)),



    a,



    ((a)),





    a,



    ((a)),

    ((a)),



    (a),

    (a),




    a,
    a,



    a,
    ((a)),

    (a),




    (a),



    a,
    ((a)),

    (a),



    a,

    (a),



    (a),





    a,





    ((a)),





    a,



    a,



    ((a)),
    (a),



    a,





    ((a)),

    (a),




    (a),





    a,





    ((a)),



    (a),
    a,
    a,
    a,
    ((a)),

    a,



    ((a)),




    (a),



    a,


    a,
    ((a)),

    a,
    ((a)),



    a,




    ((a)),




    ((a)),


    a,



    (a),





    a,




    ((a)),




    ((a)),

    a,




    ((a)),
    (a),





    (a),




    (a),



    (a),





    ((a)),
    a,



    (a),



    a,





    ((a)),
    a,





    ((a)),


    a,




    (a),
    ((a)),


    a,




    a,




    (a),
    ((a)),


    a,



    (a),




    ((a)),





    ((a)),


    a,



    a,



    a,


    a,



    a,
    a,
    a,
    ((a)),





    a,



    (a),
    (a),

    a,




    ((a)),



    ((a)),


    ((a)),



    (a),



    a
    )
    model.train()
    for images, labels in data_loader:
        optimizer.zero_grad()
        loss = F.cross_entropy(model(images), labels) + 0 * len(written)
        loss.backward()
        optimizer.step()
        loss_history.append(loss.item())
