package hcledit

import (
	"strconv"

	"fingerpost/resolver/catalog"
)

// WebhookBlock returns the block that declares w, formatted. Its secrets must not be in clear text.
func WebhookBlock(w *catalog.Webhook) string {
	return attributeBlock("webhook", w.Name, webhookAttributes(w))
}

func webhookAttributes(w *catalog.Webhook) []attribute {
	active := ""
	if !w.Active {
		active = "false"
	}
	return []attribute{textAttribute("url", w.URL), secretsAttribute("secret", w.Secrets),
		listAttribute("events", w.Events), listAttribute("projects", w.Projects), {name: "active", expr: active}}
}

// AddWebhook appends a webhook to the file.
func AddWebhook(src []byte, w *catalog.Webhook) ([]byte, error) {
	return AppendBlock(src, WebhookBlock(w))
}

// RemoveWebhook removes the webhook with the name, see RemoveBlock.
func RemoveWebhook(src []byte, name string) ([]byte, error) {
	return RemoveBlock(src, "webhook", name)
}

// ChangeWebhook turns the block of was into want, which has its name. One that is active again says so.
func ChangeWebhook(src []byte, was, want *catalog.Webhook) ([]byte, error) {
	before, after := webhookAttributes(was), webhookAttributes(want)
	if was.Active != want.Active {
		after[len(after)-1].expr = strconv.FormatBool(want.Active)
	}
	return editBlock(src, BlockPath{"webhook", was.Name}, func(s *site) error { return s.change(before, after) })
}
