"""The packages of the homework: contracts, validation, layers, patches, encoder, model, schedule, reporting."""
