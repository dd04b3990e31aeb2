template "A" {
  name             = "A"
  subject_template = "s"
  body_text        = "t"

  locale "de" {                      # ERROR: locale needs a body_html, a body_text or both # ERROR: "subject_template" is missing
  }
  locale "de" {                      # ERROR: language "de" is there twice
    subject_template = "s"
    body_text        = "t"
  }
  locale "DE-at" {                   # ERROR: tag: must be written de-AT
    subject_template = "s {{a b}}"   # ERROR: subject_template: what stands in double braces
    body_html        = "<script>{{a}}</script>" # ERROR: body_html: {{a}} cannot stand in a script
  }
  locale "german" {                  # ERROR: tag: must be a language as in BCP 47
    subject_template = "s"
    body_html        = file("mail/none.html") # ERROR: cannot read the file "mail/none.html"
    name             = "N"           # ERROR: unknown attribute "name"
  }
  locale {                           # ERROR: a locale block needs a label
    subject_template = "s"
    body_text        = "t"
  }
  locale "fr-u-co-phonebk" {         # ERROR: tag: must be a language as in BCP 47
    subject_template = "s"
    body_text        = "t"
    locale "x" {                     # ERROR: a locale block cannot stand here
    }
  }
  domain "a.example" {}              # ERROR: a domain block cannot stand here
  locales = "de"                     # ERROR: unknown attribute "locales"
}
locale "de" {}                       # ERROR: a locale block cannot stand here
