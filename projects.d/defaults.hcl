# What a project does not say itself. At most one such block over all files.
defaults {
  auth_settings {
    password_min_length = 10
  }
}
