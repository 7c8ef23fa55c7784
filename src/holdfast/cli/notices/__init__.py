"""Notices of `holdfast notify`: their content, where they are sent, and how they are delivered."""
