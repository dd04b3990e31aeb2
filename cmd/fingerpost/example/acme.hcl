# One file a project keeps reviews, merges and reloads small. The label is the slug.
project "acme" {
  name        = "Acme Shop"
  description = "Storefront and back office"
  status      = "ACTIVE" # DRAFT when left out; SUSPENDED answers 403

  # Exact names first, then the wildcard with the longest suffix.
  domain "shop.acme.example" { primary = true }
  domain "*.acme.example" {}
  domain "old.acme.example" { active = false } # known, but not verified: 403

  service_settings {
    auth_enabled = true
    mail_enabled = true
  }

  auth_settings {
    registration_mode           = "OPEN" # or APPROVAL_REQUIRED, INVITE_ONLY
    email_verification_required = true
    jwt_secret                  = env("ACME_JWT_SECRET") # or sealed(…), file(…); never in clear text
    jwt_expires_in              = "15m"
  }

  smtp_config {
    host        = "smtp.acme.example"
    port        = 587
    username    = "acme"
    password    = env("ACME_SMTP_PASSWORD")
    from_email  = "hello@acme.example"
    from_name   = "Acme"
    tls_enabled = true
  }

  # Wins over the default template of the same code.
  template "WELCOME" {
    name             = "Welcome to the shop"
    subject_template = "Welcome to {{projectName}}, {{userName}}"
    body_html        = file("mail/acme-welcome.html")
    body_text        = <<-EOT
      Welcome to the shop, {{userName}}

      Good to have you at {{projectName}}. Look around: https://shop.acme.example/
    EOT
  }
}
