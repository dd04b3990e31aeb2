# Acme's shop: the example of the file contract.
project "acme" {                      # the label is the slug
  name        = "Acme Shop"
  description = "Storefront and back office"
  status      = "ACTIVE"              # DRAFT when left out

  domain "shop.acme.example" { primary = true }
  domain "*.acme.example" {}
  domain "old.acme.example" { active = false }

  service_settings {
    auth_enabled = true
    mail_enabled = true
    sms_provider         = "none"     # the flat resolve form's fields stand here too
    audit_retention_days = 365
  }

  auth_settings {
    registration_mode           = "APPROVAL_REQUIRED"
    email_verification_required = true
    jwt_secret                  = sealed("YWdlLWVuY3J5cHRpb24ub3JnL3Yx")
    jwt_expires_in              = "15m"
    password_min_length         = 12
  }

  smtp_config {
    host        = "smtp.acme.example"
    port        = 587
    username    = "acme"
    password    = env("ACME_SMTP_PASSWORD")
    from_email  = "hello@acme.example"
    from_name   = "Acme"
    tls_enabled = true
    active      = true
  }

  template "WELCOME" {
    name             = "Welcome"
    subject_template = "Welcome to {{projectName}}, {{userName}}"
    body_html        = file("mail/welcome.html")   # a path below the config folder
    body_text        = <<-EOT
      Hello {{userName}},
      good to have you.
    EOT
  }

  template "RECEIPT" {
    name             = "Receipt"
    subject_template = "Your receipt {{number}}"
    max_age          = "10m"
    body_html        = <<-EOT
      <html>
        <body>
          <h1>Thank you, {{userName}}</h1>
          <p>Your order {{number}} of {{date}} is on its way.</p>
          <p>Price: $${amount} or {{amount}}</p>
        </body>
      </html>
    EOT
    body_text        = trimsuffix(<<-EOT
      Thank you, {{userName}}.

      Your order {{number}} of {{date}} is on its way.
    EOT
    , "\n")
  }
}

template "PASSWORD_RESET" {
  name             = "Password reset"
  subject_template = "Reset your password"
  body_text        = "Hello {{userName}}, here is your link: {{link}}"
}

defaults {
  auth_settings {
    password_min_length = 10
    registration_mode   = "OPEN"
  }
  service_settings { sms_provider = "none" }
}

key "checkout" {
  id         = "7kq2m9"
  hash       = "sha256:b1a2c3d4b1a2c3d4b1a2c3d4b1a2c3d4b1a2c3d4b1a2c3d4b1a2c3d4b1a2c3d4"
  allow      = ["resolve", "mail"]
  projects   = ["acme"]
  expires_at = "2027-06-30T00:00:00"
}

sealing {
  recipients = ["age1ql3z7hjy54pw3hyww5ayyfg7zqgvc7w3j2elw8zmrj2kg5sfn9aqmcac8p"]
}
