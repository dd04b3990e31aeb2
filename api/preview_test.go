package api_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// A preview is what a send would make, with what is missing and what is not used.
func TestPreview(t *testing.T) {
	p := startPost(t, newSink(t), nil)
	path := fmt.Sprintf("/projects/%d/templates/preview", postID)
	for _, c := range []struct {
		body, subject, text string
		html                any
		missing, unused     []any
	}{
		{`{"templateCode":"HELLO","variables":{"userName":"Ada","colour":"green"}}`, "Hello Ada", "Hi Ada, it is {{code}} from The post.", nil, []any{"code"}, []any{"colour"}},
		{`{"templateCode":"SHARED"}`, "Shared by The post", "For everybody.", nil, []any{}, []any{}},
		{`{"subjectTemplate":"{{ a }} <&>","bodyHtml":"<p>{{a}} &amp; {{projectName}}</p>","variables":{"a":"<b>","projectName":"Mine"}}`,
			"<b> <&>", "<b> & Mine", "<p>&lt;b&gt; &amp; Mine</p>", []any{}, []any{}},
		{`{"subjectTemplate":"s","bodyText":"no {{one}} sees"}`, "s", "no {{one}} sees", nil, []any{"one"}, []any{}},
	} {
		a := p.ask("POST", path, p.reader, c.body)
		a.check(t, 200, "")
		d := a.data()
		if d["subject"] != c.subject || strings.TrimSpace(fmt.Sprint(d["bodyText"])) != c.text || d["bodyHtml"] != c.html ||
			fmt.Sprint(d["missing"]) != fmt.Sprint(c.missing) || fmt.Sprint(d["unused"]) != fmt.Sprint(c.unused) {
			t.Errorf("%s: %s", c.body, a.body)
		}
	}
	if got := p.sink.Letters(); len(got) > 0 {
		t.Errorf("a preview was sent: %+v", got)
	}
}

func TestPreviewRefused(t *testing.T) {
	p := startPost(t, newSink(t), nil)
	for _, c := range []struct {
		project, key, body string
		status             int
		code               string
		fields             []string
	}{
		{"41", p.other, `{`, 403, "FORBIDDEN", nil},
		{"x", p.reader, `{`, 400, "VALIDATION_ERROR", []string{"projectId"}},
		{"999", p.reader, `{`, 404, "NOT_FOUND", nil},
		{"42", p.poster, `{`, 403, "FORBIDDEN", nil},
		{"41", p.poster, `{}`, 400, "VALIDATION_ERROR", []string{"templateCode"}},
		{"41", p.poster, `{"templateCode":"","variables":{"x":1}}`, 400, "VALIDATION_ERROR", []string{"variables.x", "templateCode"}},
		{"41", p.poster, `{"templateCode":"HELLO","bodyText":"x"}`, 400, "VALIDATION_ERROR", []string{"templateCode"}},
		{"41", p.poster, `{"bodyText":7}`, 400, "VALIDATION_ERROR", []string{"bodyText", "subjectTemplate"}},
		{"41", p.poster, `{"subjectTemplate":"s"}`, 400, "VALIDATION_ERROR", []string{"bodyHtml"}},
		{"41", p.poster, `{"subjectTemplate":"{{a","bodyHtml":"<script>{{b}}</script>","bodyText":"{{#if}}"}`, 400, "VALIDATION_ERROR", []string{"subjectTemplate", "bodyHtml", "bodyText"}},
		{"41", p.poster, `{"subjectTemplate":"{{a}}","bodyText":"t","variables":{"a":"x\ny"}}`, 400, "VALIDATION_ERROR", []string{"variables.a"}},
		{"41", p.poster, `{"subjectTemplate":"s","bodyHtml":"<p style=\"{{b}}\">"}`, 400, "VALIDATION_ERROR", []string{"bodyHtml"}},
		{"41", p.poster, `{"subjectTemplate":"s","bodyHtml":"<form action=\"{{b}}\"><video poster='{{c}}'>","variables":{"b":"javascript:alert(1)","c":" https://x.example/"}}`,
			400, "VALIDATION_ERROR", []string{"variables.b", "variables.c"}},
		{"41", p.poster, `{"templateCode":"NONE"}`, 404, "NOT_FOUND", nil},
		{"41", p.poster, `{"templateCode":"ASLEEP"}`, 409, "TEMPLATE_INACTIVE", nil},
	} {
		a := p.ask("POST", "/projects/"+c.project+"/templates/preview", c.key, c.body)
		a.check(t, c.status, c.code)
		if c.fields != nil && !slices.Equal(a.fields(), c.fields) {
			t.Errorf("%s: fields %q, want %q: %s", c.body, a.fields(), c.fields, a.body)
		}
	}
}
