package telemetry

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"strconv"
	"strings"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"github.com/callyard/callyard/internal/kit/tlsfiles"
)

// scope is the instrumentation scope of the spans.
const scope = "github.com/callyard/callyard"

// longestText limits the length of an attribute, in characters.
const longestText = 256

// TraceOptions configure the traces of a process. Service, Metrics and Log are required.
type TraceOptions struct {
	Config TraceConfig
	// Service is the name of the program, such as callyard-frontdoor. Version is its build, and
	// Instance distinguishes processes of the same program.
	Service, Version, Instance string
	Metrics                    *Metrics
	Log                        *slog.Logger
	// Getenv reads the variables of OpenTelemetry. If nil, it is the environment of the process.
	Getenv func(string) string
}

// OpenTraces returns the traces of a process. It returns nil if they are disabled: neither
// Config.Endpoint nor OTEL_EXPORTER_OTLP_ENDPOINT nor its _TRACES_ form is set, or
// OTEL_SDK_DISABLED is true, or OTEL_TRACES_EXPORTER is none. If only the variables enable traces,
// OTEL_TRACES_SAMPLER decides what is sampled, and not Config.Ratio. An endpoint that does not
// answer is not an error.
//
// From then on, the SDK reports its errors to Log for the whole process, because it has only one
// global error handler.
func OpenTraces(ctx context.Context, o TraceOptions) (*Traces, error) {
	if o.Getenv == nil {
		o.Getenv = os.Getenv
	}
	byVariables := o.Getenv("OTEL_EXPORTER_OTLP_ENDPOINT") != "" || o.Getenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT") != ""
	switch {
	case o.Config.Endpoint == "" && !byVariables,
		strings.EqualFold(o.Getenv("OTEL_SDK_DISABLED"), "true"), strings.EqualFold(o.Getenv("OTEL_TRACES_EXPORTER"), "none"):
		return nil, nil
	}
	protocol := firstOf(o.Getenv, "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL")
	if protocol == "grpc" {
		o.Log.Warn("traces are sent as http/protobuf; OTEL_EXPORTER_OTLP_PROTOCOL=grpc is not supported, so set the collector's HTTP port, usually 4318")
	}
	options, err := o.exporterOptions()
	if err != nil {
		return nil, err
	}
	exporter, err := otlptracehttp.New(ctx, options...)
	if err != nil {
		return nil, fmt.Errorf("preparing to send traces: %w", err)
	}
	about, err := o.resource(ctx)
	if err != nil {
		return nil, errors.Join(err, exporter.Shutdown(ctx))
	}
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) { o.Log.Warn("OpenTelemetry reported an error", "error", err) }))
	return newTraces(exporter, about, o), nil
}

func newTraces(exporter sdktrace.SpanExporter, about *resource.Resource, o TraceOptions) *Traces {
	t := &Traces{
		sender: newSender(exporter, o.Config.Timeout, o.every(), queueSpans, o.Metrics, o.Log),
		share:  o.Config.BatchRatio,
	}
	ordinary := sdktrace.ParentBased(sdktrace.TraceIDRatioBased(o.Config.Ratio))
	if o.Config.Endpoint == "" {
		ordinary = samplerByName(o.Getenv("OTEL_TRACES_SAMPLER"), o.Getenv("OTEL_TRACES_SAMPLER_ARG"), ordinary)
	}
	limits := sdktrace.NewSpanLimits()
	limits.AttributeValueLengthLimit = longestText
	t.provider = sdktrace.NewTracerProvider(
		sdktrace.WithSampler(sampler{ordinary}), sdktrace.WithSpanProcessor(t.sender), sdktrace.WithRawSpanLimits(limits), sdktrace.WithResource(about),
	)
	t.tracer = t.provider.Tracer(scope, trace.WithInstrumentationVersion(o.Version))
	return t
}

// every returns the longest time that a span waits for a batch.
func (o *TraceOptions) every() time.Duration {
	if ms, err := strconv.Atoi(o.Getenv("OTEL_BSP_SCHEDULE_DELAY")); err == nil && ms > 0 {
		return time.Duration(ms) * time.Millisecond
	}
	return sendEvery
}

// Close exports waiting spans until ctx ends, and drops the rest. Spans that end later are lost. It
// may be called on nil.
func (t *Traces) Close(ctx context.Context) error {
	if t == nil {
		return nil
	}
	err := t.sender.Shutdown(ctx) // the provider would not call it after ctx has ended
	return errors.Join(err, t.provider.Shutdown(context.WithoutCancel(ctx)))
}

// exporterOptions returns the options of the exporter. The exporter itself reads unset options from
// the variables of OpenTelemetry.
func (o *TraceOptions) exporterOptions() ([]otlptracehttp.Option, error) {
	c := o.Config
	transport := http.DefaultTransport.(*http.Transport).Clone()
	secure, err := o.certificates()
	if err != nil {
		return nil, err
	}
	transport.TLSClientConfig = secure
	// The client has no timeout, since sender limits each export.
	list := []otlptracehttp.Option{otlptracehttp.WithHTTPClient(&http.Client{Transport: transport})}
	if c.Endpoint != "" {
		address, err := c.address()
		if err != nil {
			return nil, fmt.Errorf("traces.endpoint is not a URL: %w", err)
		}
		list = append(list, otlptracehttp.WithEndpointURL(address))
	}
	if len(c.Headers) > 0 {
		headers := make(map[string]string, len(c.Headers))
		for name, value := range c.Headers {
			headers[name] = value.Reveal()
		}
		list = append(list, otlptracehttp.WithHeaders(headers))
	}
	return list, nil
}

func (o *TraceOptions) certificates() (*tls.Config, error) {
	ca := o.Config.CAFile
	if ca == "" {
		ca = firstOf(o.Getenv, "OTEL_EXPORTER_OTLP_TRACES_CERTIFICATE", "OTEL_EXPORTER_OTLP_CERTIFICATE")
	}
	cert := firstOf(o.Getenv, "OTEL_EXPORTER_OTLP_TRACES_CLIENT_CERTIFICATE", "OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE")
	key := firstOf(o.Getenv, "OTEL_EXPORTER_OTLP_TRACES_CLIENT_KEY", "OTEL_EXPORTER_OTLP_CLIENT_KEY")
	return tlsfiles.Client("traces", ca, cert, key)
}

// resource identifies the process of the spans. OTEL_SERVICE_NAME and OTEL_RESOURCE_ATTRIBUTES
// override the values known here.
func (o *TraceOptions) resource(ctx context.Context) (*resource.Resource, error) {
	about, err := resource.New(ctx, resource.WithTelemetrySDK(), resource.WithAttributes(
		attribute.String("service.name", o.Service), attribute.String("service.version", o.Version), attribute.String("service.instance.id", o.Instance),
	), resource.WithFromEnv())
	if err != nil && !errors.Is(err, resource.ErrPartialResource) {
		return nil, fmt.Errorf("describing this process for traces: %w", err)
	}
	return about, nil
}

func firstOf(getenv func(string) string, names ...string) string {
	for _, name := range names {
		if v := getenv(name); v != "" {
			return v
		}
	}
	return ""
}

// samplerByName returns the sampler of OTEL_TRACES_SAMPLER and its argument, or otherwise if the name
// is unknown.
func samplerByName(name, argument string, otherwise sdktrace.Sampler) sdktrace.Sampler {
	ratio, err := strconv.ParseFloat(argument, 64)
	if err != nil || !(ratio >= 0 && ratio <= 1) {
		ratio = 1
	}
	switch strings.ToLower(strings.TrimSpace(name)) {
	case "always_on":
		return sdktrace.AlwaysSample()
	case "always_off":
		return sdktrace.NeverSample()
	case "traceidratio":
		return sdktrace.TraceIDRatioBased(ratio)
	case "parentbased_always_on":
		return sdktrace.ParentBased(sdktrace.AlwaysSample())
	case "parentbased_always_off":
		return sdktrace.ParentBased(sdktrace.NeverSample())
	case "parentbased_traceidratio":
		return sdktrace.ParentBased(sdktrace.TraceIDRatioBased(ratio))
	}
	return otherwise
}

// wanted is the context key of an earlier sampling decision: work that another request asked for is
// sampled if that request was.
type wanted struct{}

// sampler decides on sampling if no earlier decision exists.
type sampler struct{ sdktrace.Sampler }

// ShouldSample implements [sdktrace.Sampler].
func (s sampler) ShouldSample(p sdktrace.SamplingParameters) sdktrace.SamplingResult {
	ok, decided := p.ParentContext.Value(wanted{}).(bool)
	if !decided {
		return s.Sampler.ShouldSample(p)
	}
	result := sdktrace.SamplingResult{Decision: sdktrace.Drop, Tracestate: trace.SpanContextFromContext(p.ParentContext).TraceState()}
	if ok {
		result.Decision = sdktrace.RecordAndSample
	}
	return result
}
