package main

import (
	"cmp"
	"maps"
	"net/http"
	"net/url"
	"os"
	"strings"
	"unicode"

	"github.com/spf13/pflag"

	"fingerpost/cmd/fingerpost/cli"
	"fingerpost/resolver/trace"
)

// The variables of OpenTelemetry that serve honours.
const (
	otelTraces        = "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"
	otelBase          = "OTEL_EXPORTER_OTLP_ENDPOINT"
	otelHeaders       = "OTEL_EXPORTER_OTLP_HEADERS"
	otelTracesHeaders = "OTEL_EXPORTER_OTLP_TRACES_HEADERS"
	otelService       = "OTEL_SERVICE_NAME"
)

const tracesPath = "/v1/traces"

func (f *serveFlags) addTraces(fl *pflag.FlagSet) {
	fl.StringVar(&f.otlp, "otlp", "", "URL of an OpenTelemetry collector (OTLP over HTTP) that gets traces of requests "+
		"with a sampled traceparent, such as http://127.0.0.1:4318")
}

// openTraces makes the exporter, if there is a collector. The flag wins over the variables.
func (f *serveFlags) openTraces(version string) error {
	from, endpoint := "--otlp", f.otlp
	if endpoint == "" {
		from, endpoint = otelTraces, os.Getenv(otelTraces)
	}
	if endpoint == "" {
		from, endpoint = otelBase, os.Getenv(otelBase)
	}
	if endpoint == "" {
		return nil
	}
	u, err := url.Parse(endpoint)
	switch {
	case err != nil: // no message quotes the address, which may have a password
		return cli.Usage("%s must be a URL such as http://127.0.0.1:4318", from)
	case u.User != nil:
		return cli.Usage("%s must have no user or password in it: give them to the collector as a header, in %s", from,
			otelHeaders)
	case u.Scheme != "http" && u.Scheme != "https" || u.Host == "":
		return cli.Usage("%s must be a URL such as http://127.0.0.1:4318", from)
	case u.RawQuery != "" || u.Fragment != "":
		return cli.Usage("%s must have no query and no fragment", from)
	}
	switch {
	case from == otelBase:
		u = u.JoinPath(tracesPath)
	case from == "--otlp" && strings.Trim(u.Path, "/") == "":
		u.Path = tracesPath
	}
	headers := map[string]string{}
	for _, name := range []string{otelHeaders, otelTracesHeaders} {
		more, problem := parseHeaders(os.Getenv(name))
		if problem != "" {
			return cli.Usage("%s: %s", name, problem)
		}
		maps.Copy(headers, more)
	}
	f.Trace = trace.New(trace.Options{URL: u.String(), Headers: headers,
		Service: cmp.Or(os.Getenv(otelService), "fingerpost"), Version: version, Logger: f.Logger})
	return nil
}

// parseHeaders parses name=value,name=value with values in percent-encoding. A problem never quotes a value, which may
// be a token.
func parseHeaders(text string) (headers map[string]string, problem string) {
	headers = map[string]string{}
	for pair := range strings.SplitSeq(text, ",") {
		if strings.TrimSpace(pair) == "" {
			continue
		}
		name, value, found := strings.Cut(pair, "=")
		name = strings.TrimSpace(name)
		value, err := url.PathUnescape(strings.TrimSpace(value))
		switch {
		case !found || !fieldName(name):
			return nil, "it must be a list such as name=value,name=value"
		case err != nil || strings.ContainsFunc(value, unicode.IsControl):
			return nil, "the value of " + name + " must be the text of a header field in percent-encoding"
		}
		headers[http.CanonicalHeaderKey(name)] = value
	}
	return headers, ""
}

func fieldName(name string) bool {
	return name != "" && !strings.ContainsFunc(name, func(r rune) bool {
		return r <= ' ' || r >= 0x7f || strings.ContainsRune(`()<>@,;:\"/[]?={}`, r)
	})
}
