# Outside a project: default templates, which every project can send, and can override by one of the same code. Callers
# give userName, and code and minutes where there is a code; projectName comes from the service. A mail without a
# body_text would get one made from its HTML.
template "WELCOME" {
  name             = "Welcome"
  subject_template = "Welcome to {{projectName}}"
  body_html        = file("mail/welcome.html")
  body_text        = <<-EOT
    Welcome, {{userName}}

    Good to have you at {{projectName}}. Your account is ready, and you can sign in at any time.

    If you have a question, just reply to this mail.
  EOT
}

template "EMAIL_VERIFICATION" {
  name             = "Email verification"
  subject_template = "Confirm your address for {{projectName}}" # the mail log keeps subjects, so no code stands in them
  max_age          = "30m"                                      # a code that has run out need not arrive
  body_html        = file("mail/email-verification.html")
  body_text        = <<-EOT
    Hello {{userName}},

    enter this code to confirm that this address is yours:

        {{code}}

    The code is good for {{minutes}} minutes. Nobody from {{projectName}} will ever ask you for it.

    If you did not give this address to {{projectName}}, you need not do anything.
  EOT
}

template "PASSWORD_RESET" {
  name             = "Password reset"
  subject_template = "Your code for {{projectName}}"
  max_age          = "10m"
  body_html        = file("mail/password-reset.html")
  body_text        = <<-EOT
    Hello {{userName}},

    enter this code to choose a new password:

        {{code}}

    The code is good for {{minutes}} minutes. Nobody from {{projectName}} will ever ask you for it.

    If you did not ask for a new password, you need not do anything: the old one stays.
  EOT
}

template "LOGIN_ALERT" {
  name             = "Login alert"
  subject_template = "New sign-in to your {{projectName}} account"
  body_html        = file("mail/login-alert.html")
  body_text        = <<-EOT
    Hello {{userName}},

    somebody has just signed in to your {{projectName}} account.

    If it was you, there is nothing to do.
    If it was not, change your password now, and sign out on all devices.
  EOT
}
