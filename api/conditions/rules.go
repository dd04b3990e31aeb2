package conditions

import (
	"fmt"
	"strings"
)

const rulesHead = `# Alerts for Prometheus: name this file under rule_files. Each has a section in the guide that its annotation
# "runbook" names, which the service itself serves. Alerts about mail, git, edges and customers' domains stay quiet
# where that is off. Made of the table of conditions by TestAlertsFile.
groups:
  - name: fingerpost
    rules:
`

// Rules returns the Prometheus rules of the table, as YAML.
func Rules() string {
	var b strings.Builder
	b.WriteString(rulesHead)
	for i, section := range sections {
		if i > 0 {
			b.WriteByte('\n')
		}
		for _, k := range section.kinds {
			if k.Alert.Name != "" {
				k.writeRule(&b)
			}
		}
	}
	return b.String()
}

func (k *Kind) writeRule(b *strings.Builder) {
	expr := k.Alert.Expr
	if strings.Contains(expr, "\n") {
		expr = "|\n          " + strings.ReplaceAll(expr, "\n", "\n          ")
	}
	fmt.Fprintf(b, "      - alert: Fingerpost%s\n        expr: %s\n", k.Alert.Name, expr)
	if k.Alert.For != "" {
		fmt.Fprintf(b, "        for: %s\n", k.Alert.For)
	}
	fmt.Fprintf(b, "        labels: {severity: %s}\n        annotations:\n", k.Severity)
	fmt.Fprintf(b, "          summary: \"%s\"\n          runbook: %s\n", k.Alert.Summary, k.GuidePath())
}
