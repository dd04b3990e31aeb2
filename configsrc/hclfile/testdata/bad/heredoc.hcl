template "A" {
  name             = "A"
  subject_template = "s"
  # ERROR@+1: the heredoc is not closed
  body_text        = <<-EOT
    Hello
  EOF
}
