# What a project does not say. At most one such block over all files.
defaults {
  auth_settings {
    password_min_length = 10
  }
}

# Outside a project: a default template, for every project that has none of this code.
template "WELCOME" {
  name             = "Welcome"
  subject_template = "Welcome to {{projectName}}"
  body_text        = <<-EOT
    Hello {{userName}},
    welcome to {{projectName}}.
  EOT
}
