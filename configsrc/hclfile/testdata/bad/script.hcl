template "A" {
  name             = "A"
  subject_template = "s"
  body_html        = <<-EOT
    <script>
      let a = `${user ? 'x' : "y"}`; // # ERROR: write $${
    </script>
  EOT
}
