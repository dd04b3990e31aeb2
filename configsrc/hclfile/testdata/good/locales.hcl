project "acme" {
  name = "Acme"

  template "WELCOME" {
    name             = "Welcome"
    subject_template = "Welcome{{#if userName}}, {{userName}}{{/if}}"
    body_html        = "<p style=\"color: {{label.brand_colour}}\">Hello</p>"

    locale "pt-BR" {
      subject_template = "Olá"
      body_text        = "Bem-vindo"
    }
    locale "de" {
      subject_template = "Hallo"
      body_html        = file("mail/welcome.html")
      body_text        = <<-EOT
        Willkommen
      EOT
    }
  }
}
