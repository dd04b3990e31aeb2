# Outside a project: default templates, which every project can send.
template "WELCOME" {
  name             = "Welcome"
  subject_template = "Welcome to {{projectName}}"
  body_text        = <<-EOT
    Hello {{userName}},
    welcome to {{projectName}}.
  EOT
}

template "PASSWORD_RESET" {
  name             = "Password reset"
  subject_template = "Your code for {{projectName}}"
  max_age          = "10m" # a code that lives ten minutes need not arrive later
  body_text        = <<-EOT
    Hello {{userName}},
    your code is {{code}}. It is good for {{minutes}} minutes.
  EOT
}
