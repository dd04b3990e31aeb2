package say

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
)

// Text returns a value as people read it; null is "".
func Text(v any) string {
	switch v := v.(type) {
	case nil:
		return ""
	case string:
		return v
	case *string:
		if v != nil {
			return *v
		}
		return ""
	case *int:
		if v != nil {
			return strconv.Itoa(*v)
		}
		return ""
	case bool:
		if v {
			return "yes"
		}
		return "no"
	case []string:
		return strings.Join(v, ", ")
	case json.RawMessage:
		return rawText(v)
	}
	return fmt.Sprint(v)
}

// rawText returns a JSON value as people read it.
func rawText(raw json.RawMessage) string {
	var s string
	var b bool
	var list []json.RawMessage
	switch {
	case len(raw) == 0 || string(raw) == "null":
		return ""
	case json.Unmarshal(raw, &s) == nil:
		return s
	case json.Unmarshal(raw, &b) == nil:
		return Text(b)
	case json.Unmarshal(raw, &list) == nil:
		all := make([]string, len(list))
		for i := range list {
			all[i] = rawText(list[i])
		}
		return strings.Join(all, ", ")
	}
	return string(raw)
}
