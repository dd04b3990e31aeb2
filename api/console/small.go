package console

import (
	"encoding/json"
	"net/url"
	"strings"
)

func pathEscape(s string) string { return url.PathEscape(s) }

func numberOf(id string) json.Number { return json.Number(id) }

func parseObject(text string) (o object) {
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	_ = d.Decode(&o)
	return o
}
