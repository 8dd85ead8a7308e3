"""What Alembic executes: the migrations that a book lacks, on the connection that it is given."""

from alembic import context

context.configure(connection=context.config.attributes["connection"], transactional_ddl=True)
with context.begin_transaction():
    context.run_migrations()
