package telemetry

import (
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/callyard/callyard/internal/config"
)

// TraceConfig is the section traces of the configuration.
type TraceConfig struct {
	// Endpoint is the address of a collector, which receives spans by OTLP over HTTP. If empty, the
	// variables of OpenTelemetry decide, and by default nothing is sent.
	Endpoint string `yaml:"endpoint"`
	// Headers are sent with each export, such as Authorization.
	Headers map[string]Secret `yaml:"headers"`
	// CAFile holds the certificate authorities for the endpoint.
	CAFile string `yaml:"ca_file"`
	// Timeout limits one export, and the last one when the process ends.
	Timeout time.Duration `yaml:"timeout"`
	// Ratio is the sampled share of requests without a traceparent. A traceparent decides by itself.
	Ratio float64 `yaml:"ratio"`
	// BatchRatio is the sampled share of the calls of a sampled batch.
	BatchRatio float64 `yaml:"batch_ratio"`
	// Baggage passes the baggage of callers, in the _meta of their requests, to MCP servers.
	Baggage bool `yaml:"baggage"`
}

// TraceDefaults returns the default section.
func TraceDefaults() TraceConfig {
	return TraceConfig{Timeout: 10 * time.Second, Ratio: 1, BatchRatio: 0.01}
}

// tracesPath is the path at which collectors accept spans.
const tracesPath = "/v1/traces"

// Validate returns the settings that are invalid; see package config.
func (c TraceConfig) Validate() (faults []config.Fault) {
	if c.Endpoint != "" {
		if _, err := c.address(); err != nil {
			faults = append(faults, config.Faultf("endpoint", "must be an http:// or https:// URL without user, query and fragment, such as http://collector:4318."))
		}
	}
	for name := range c.Headers {
		if name == "" || strings.ContainsAny(name, " \t\r\n:") {
			faults = append(faults, config.Faultf("headers", "has %q, which is not a valid HTTP header name.", name))
		}
	}
	if c.Timeout <= 0 || c.Timeout > time.Minute {
		faults = append(faults, config.Faultf("timeout", "must be more than 0 and at most 1m."))
	}
	share := func(key string, v float64) {
		if !(v >= 0 && v <= 1) {
			faults = append(faults, config.Faultf(key, "must be from 0 (none) to 1 (all)."))
		}
	}
	share("ratio", c.Ratio)
	share("batch_ratio", c.BatchRatio)
	return faults
}

// address returns the endpoint with its path.
func (c TraceConfig) address() (string, error) {
	u, err := url.Parse(c.Endpoint)
	if err != nil {
		return "", err
	}
	if u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return "", strconv.ErrSyntax
	}
	if u.Path == "" || u.Path == "/" {
		u.Path = tracesPath
	}
	return u.String(), nil
}
