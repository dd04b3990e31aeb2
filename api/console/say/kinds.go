package say

import "fingerpost/resolver/catalog"

// A Kind is an action of the audit trail with what people call it.
type Kind struct{ Action, Text string }

// kinds are the words for objects and for the actions that concern no single one.
var kinds = map[string]string{
	"project": "Project", "domain": "Domain", "service-settings": "Service settings", "auth-settings": "Auth settings",
	"smtp-config": "Mail server", "template": "Mail template", "default-template": "Default mail template",
	"key": "Key", "edge": "Edge", "webhook": "Webhook",

	"key.rotate": "Key rotated", "defaults.update": "Defaults changed", "sealing.update": "Sealing of secrets changed",
	catalog.AuditLoad: "All files loaded", catalog.AuditConfirm: "Held reload let through",
	catalog.AuditRestore: "Backup restored", catalog.AuditApply: "Proposal applied",
	catalog.AuditApprove: "Proposal approved", catalog.AuditDrop: "Proposal dropped",
	catalog.AuditOverruled: "Write set aside", catalog.AuditEndLinks: "Links of customers ended",
	catalog.AuditVerify: "Domain proven", catalog.AuditLost: "Proof of a domain lost",
	catalog.AuditFailing: "Proof of a domain missed",
	"webhook.rotate":     "Secret of a webhook rotated", catalog.AuditReplay: "Events sent again",
	catalog.AuditBegins: "Something needs a person", catalog.AuditEnds: "What needed a person is over",
}

// Kinds lists every action of the audit trail, for people who look for some.
func Kinds() (list []Kind) {
	settings := map[string]bool{"service-settings": true, "auth-settings": true} // exist as long as their project
	for _, object := range catalog.AuditObjects {
		for _, verb := range []struct{ verb, text string }{{"create", " added"}, {"update", " changed"},
			{"delete", " removed"}} {
			if verb.verb == "update" || !settings[object] {
				list = append(list, Kind{object + "." + verb.verb, kinds[object] + verb.text})
			}
		}
	}
	for _, action := range catalog.AuditOthers {
		list = append(list, Kind{action, kinds[action]})
	}
	return list
}
