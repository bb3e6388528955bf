package settings

import (
	"strings"
	"testing"
)

func TestTraceURLRequiresATraceIDPlaceholder(t *testing.T) {
	for url, good := range map[string]bool{
		"": true,
		"https://jaeger.example/trace/{trace_id}":                 true,
		"http://127.0.0.1:16686/trace/{trace_id}":                 true,
		"https://grafana.example/explore?left=x{trace_id}y&org=1": true,
		"https://traces.example/#/trace/{trace_id}":               true,
		"https://jaeger.example/trace/":                           false,
		"https://jaeger.example/trace/{traceid}":                  false,
		"https://jaeger.example/{trace_id}/{trace_id}":            false,
		"https://{trace_id}.example/":                             false,
		"https://ada:secret@jaeger.example/trace/{trace_id}":      false,
		"https://ada@jaeger.example/trace/{trace_id}":             false,
		"javascript:alert('{trace_id}')":                          false,
		"data:text/html,{trace_id}":                               false,
		"//jaeger.example/trace/{trace_id}":                       false,
		"/trace/{trace_id}":                                       false,
		"https:///trace/{trace_id}":                               false,
		"https://jaeger.example/%zz/{trace_id}":                   false,
	} {
		faults := Console{TraceURL: url}.Validate()
		if good != (len(faults) == 0) {
			t.Errorf("%q: %v", url, faults)
		}
		for _, f := range faults {
			if f.Path != "trace_url" || !strings.Contains(f.Message, "{trace_id}") || strings.Contains(f.Message, "secret") {
				t.Errorf("%q: %+v", url, f)
			}
		}
	}
}
