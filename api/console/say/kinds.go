package say

import (
	"maps"
	"slices"
	"strings"

	"fingerpost/resolver/catalog"
)

// A Kind is an action of the audit trail with what people call it.
type Kind struct{ Action, Text string }

// kinds are the words for objects and for the actions that concern no single one.
var kinds = map[string]string{
	"project": "Project", "domain": "Domain", "service-settings": "Service settings", "auth-settings": "Auth settings",
	"smtp-config": "Mail server", "template": "Mail template", "default-template": "Default mail template",
	"key": "Key", "edge": "Edge", "webhook": "Webhook", "login": "Login", "inbound": "Outcomes from a provider",

	"key.rotate": "Key rotated", "defaults.update": "Defaults changed", "sealing.update": "Sealing of secrets changed",
	catalog.AuditLoad: "All files loaded", catalog.AuditConfirm: "Held reload let through",
	catalog.AuditRestore: "Backup restored", catalog.AuditApply: "Proposal applied",
	catalog.AuditApprove: "Proposal approved", catalog.AuditDrop: "Proposal dropped",
	catalog.AuditOverruled: "Write set aside", catalog.AuditEndLinks: "Links of customers ended",
	catalog.AuditVerify: "Domain proven", catalog.AuditLost: "Proof of a domain lost",
	catalog.AuditFailing: "Proof of a domain missed", catalog.AuditSenderWorse: "Sender check got worse",
	"webhook.rotate": "Secret of a webhook rotated", catalog.AuditReplay: "Events sent again",
	catalog.AuditSuppress: "Address suppressed", catalog.AuditRelease: "Address released",
	catalog.AuditBegins: "Something needs a person", catalog.AuditEnds: "What needed a person is over",
}

// mails are the words for the events of webhooks that are no action.
var mails = map[string]string{catalog.EventMailSent: "Mail sent", catalog.EventMailFailed: "Mail not sent",
	catalog.EventMailExpired: "Mail given up", catalog.EventMailSuppressed: "Mail stopped by the suppression list"}

// Events lists all that the list of a webhook may hold, with what people call it: what stands for several, then each event.
func Events() (list []Kind) {
	texts := maps.Clone(mails)
	for _, k := range actions() {
		texts[k.Action] = k.Text
	}
	for _, p := range catalog.WebhookPatterns() {
		text := texts[p]
		if kind, several := strings.CutSuffix(p, "*"); several {
			text = "everything that begins with " + kind
			if kind == "" {
				text = "everything"
			}
		}
		list = append(list, Kind{p, text})
	}
	return list
}

// Kinds lists every action of the audit trail, for people who look for some.
func Kinds() []Kind {
	return slices.DeleteFunc(actions(), func(k Kind) bool { // settings exist as long as their project
		noun, verb, _ := strings.Cut(k.Action, ".")
		return verb != "update" && (noun == "service-settings" || noun == "auth-settings")
	})
}

func actions() (list []Kind) {
	for _, object := range catalog.AuditObjects {
		for _, verb := range []struct{ verb, text string }{{"create", " added"}, {"update", " changed"},
			{"delete", " removed"}} {
			list = append(list, Kind{object + "." + verb.verb, kinds[object] + verb.text})
		}
	}
	for _, action := range catalog.AuditOthers {
		list = append(list, Kind{action, kinds[action]})
	}
	return list
}
