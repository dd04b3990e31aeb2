package catalog

import (
	"fmt"
	"time"
)

const rotationPrefix = "webhook-rotation/"

// RotationEnd returns the named value that keeps when a webhook's older secrets end, for SetNamed and RemoveNamed.
func RotationEnd(webhook string, end time.Time) map[string][]byte {
	return map[string][]byte{rotationPrefix + webhook: []byte(end.UTC().Format(time.RFC3339))}
}

// RotationEnds returns when the older secrets of webhooks end, by the webhook's name. Then Webhook.EndRotation drops them
// from the file, in a WebhookEdit that Seals. A value that cannot be read is left out: it says nothing.
func RotationEnds(notes interface {
	EachNamed(prefix string, f func(name string, value []byte) error) error
}) (map[string]time.Time, error) {
	all := map[string]time.Time{}
	err := notes.EachNamed(rotationPrefix, func(name string, value []byte) error {
		if end, err := time.Parse(time.RFC3339, string(value)); err == nil {
			all[name[len(rotationPrefix):]] = end
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read when secrets of webhooks end: %w", err)
	}
	return all, nil
}
