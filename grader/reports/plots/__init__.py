"""Plots of trainings and data as image files, drawn by matplotlib or Pillow."""
