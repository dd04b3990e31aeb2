package hclfile_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"fingerpost/configsrc/hclfile"
)

// A village is a maker of sound files and of edits of them, many of which break a rule between blocks.
type village struct{ scribble }

func (v *village) domains(project int) []string {
	var names []string
	for i := range v.IntN(5) {
		names = append(names, v.pick(fmt.Sprintf("d%d.p%d.example", i, project), fmt.Sprintf("*.d%d.p%d.example", i, project), fmt.Sprintf("Bücher%d.p%d.example", i, project)))
	}
	return names
}

// file has up to three projects. The second result are the blocks of each that can be edited.
func (v *village) file() (src []byte, blocks []hclfile.BlockPath) {
	var b strings.Builder
	line := func(format string, args ...any) {
		fmt.Fprintf(&b, format+v.pick("\n", "\n", " # why\n", "\n\n"), args...)
	}
	for i := range 1 + v.IntN(3) {
		slug := fmt.Sprint("p", i)
		blocks = append(blocks, hclfile.BlockPath{"project", slug})
		line("project %q {", slug)
		line("  name = \"Project %d\"", i)
		if v.IntN(4) == 0 {
			line("  uuid = \"0a8c11ce-%04d-4000-8000-00000000000%d\"", v.IntN(10000), i)
		}
		if v.IntN(8) == 0 {
			line("  id = %d", 100+i)
		}
		parts := []func(){}
		primary := v.IntN(4)
		for n, name := range v.domains(i) {
			parts = append(parts, func() {
				blocks = append(blocks, hclfile.BlockPath{"project", slug, "domain", name})
				switch {
				case n == primary:
					line("  domain %q { primary = true }", name)
				case v.IntN(6) == 0:
					line("  domain %q {\n    id = %d\n    active = false\n  }", name, 10*i+n+1)
				default:
					line("  domain %q {}", name)
				}
			})
		}
		if v.IntN(2) == 0 {
			parts = append(parts, func() {
				blocks = append(blocks, hclfile.BlockPath{"project", slug, "service_settings"})
				line("  service_settings {\n    mail_enabled = %v\n    sms_provider = \"none\"\n  }", v.IntN(2) == 0)
			})
		}
		if v.IntN(2) == 0 {
			secret := v.pick("", "    jwt_secret = env(\"SECRET\")\n")
			parts = append(parts, func() {
				blocks = append(blocks, hclfile.BlockPath{"project", slug, "auth_settings"})
				line("  auth_settings {\n    registration_mode = \"INVITE_ONLY\"\n%s    password_min_length = %d\n  }", secret, 8+v.IntN(5))
			})
		}
		if v.IntN(3) == 0 {
			parts = append(parts, func() {
				blocks = append(blocks, hclfile.BlockPath{"project", slug, "template", "T"})
				line("  template \"T\" {\n    name = \"T\"\n    subject_template = \"Hello\"\n    body_text = \"Hello\"\n  }")
			})
		}
		v.Shuffle(len(parts), func(i, j int) { parts[i], parts[j] = parts[j], parts[i] })
		for _, part := range parts {
			part()
		}
		line("}")
		if v.IntN(4) == 0 {
			line("template \"D%d\" {\n  name = \"D\"\n  subject_template = \"Hello\"\n  body_text = \"Hello\"\n}", i)
			blocks = append(blocks, hclfile.BlockPath{"template", fmt.Sprint("D", i)})
		}
	}
	return []byte(b.String()), blocks
}

func (v *village) step(blocks []hclfile.BlockPath) hclfile.Step {
	at := blocks[v.IntN(len(blocks))]
	name := fmt.Sprintf("d%d.p%d.example", v.IntN(4), v.IntN(3)) // may be there already
	switch what := at[len(at)-2]; {
	case v.IntN(8) == 0 && len(at) > 2:
		return hclfile.Step{Op: "remove", At: at}
	case what == "project" && v.IntN(2) == 0:
		text := v.pick(" {}", " { primary = true }", " {\n  id = 1\n}")
		return hclfile.Step{Op: "insert", At: at, Text: fmt.Sprintf("domain %q%s", name, text)}
	case what == "project":
		name := v.pick("name", "description", "uuid", "id", "status")
		value := map[string]string{"name": `"Other"`, "description": `"a\nb"`, "uuid": `"0a8c11ce-0000-4000-8000-000000000000"`, "id": "7", "status": `"ACTIVE"`}[name]
		return hclfile.Step{Op: v.pick("set", "set", "unset"), At: at, Name: name, Text: value}
	case what == "domain" && v.IntN(3) == 0:
		return hclfile.Step{Op: "rename", At: at, Text: name}
	case what == "domain":
		name := v.pick("primary", "active", "id")
		return hclfile.Step{Op: v.pick("set", "unset"), At: at, Name: name, Text: map[string]string{"primary": "true", "active": "false", "id": "1"}[name]}
	case at[len(at)-1] == "service_settings":
		return hclfile.Step{Op: "set", At: at, Name: "audit_retention_days", Text: v.pick("0", "30")}
	case at[len(at)-1] == "auth_settings":
		return hclfile.Step{Op: "set", At: at, Name: "jwt_secret", Text: v.pick(`"plain"`, `env("A")`)}
	}
	return hclfile.Step{Op: "set", At: at, Name: "body_text", Text: `"Hello {{userName}}"`}
}

// TestKept makes edits and compares what a Draft decodes of the result, by what the source says, with what is decoded
// without knowing of it.
func TestKept(t *testing.T) {
	v := &village{scribble{Rand: rand.New(rand.NewPCG(11, 12))}}
	made, took := 0, 0
	for i := range rounds(t, 6000) {
		src, blocks := v.file()
		if _, ds := hclfile.Decode("s.hcl", src, hclfile.Options{}); len(ds) > 0 {
			t.Fatalf("%d: %s\n%s", i, text(ds), src)
		}
		var steps []hclfile.Step
		for range 1 + v.IntN(2) {
			steps = append(steps, v.step(blocks))
		}
		differ, kept, err := hclfile.Redecode(src, steps)
		if err != nil {
			continue // steps that exclude each other
		}
		if differ != "" {
			t.Fatalf("%d: %+v: %s\n%s", i, steps, differ, src)
		}
		if made++; kept {
			took++
		}
	}
	t.Logf("of %d edits %d kept something", made, took)
	if took < made/3 {
		t.Errorf("of %d edits only %d kept something", made, took)
	}
}
