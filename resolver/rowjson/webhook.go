package rowjson

import "fingerpost/resolver/catalog"

// AppendWebhook appends a webhook as JSON, without its secrets.
func AppendWebhook(dst []byte, w *catalog.Webhook) []byte {
	return AppendObject(dst, webhookFields(w)...)
}

// AppendNewSecret is AppendWebhook with a secret that the service has just made, which is shown once.
func AppendNewSecret(dst []byte, w *catalog.Webhook, secret string) []byte {
	return AppendObject(dst, append(webhookFields(w), "secret", secret)...)
}

// AppendRotatedSecret is AppendNewSecret for a rotation. end is when the older secrets go, as a time or nil.
func AppendRotatedSecret(dst []byte, w *catalog.Webhook, secret string, end any) []byte {
	return AppendObject(dst, append(webhookFields(w), "secret", secret, "overlapEndsAt", end)...)
}

func webhookFields(w *catalog.Webhook) []any {
	return []any{
		"uuid", w.UUID.String(),
		"name", w.Name,
		"url", w.URL,
		"events", nullIf(w.Events == nil, w.Events),
		"projects", nullIf(w.Projects == nil, w.Projects),
		"active", w.Active,
		"secrets", int64(len(w.Secrets)),
	}
}

// WebhookETag returns the ETag of a webhook. It changes with the secrets, too.
func WebhookETag(w *catalog.Webhook) string {
	b := AppendWebhook(nil, w)
	for _, s := range w.Secrets {
		b = append(append(b, byte(s.Source)), s.Ref...)
	}
	return ETag(b)
}
