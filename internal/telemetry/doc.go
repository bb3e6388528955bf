// Package telemetry makes what the outside sees of a process: its log, its
// metrics and its traces.
//
// It owns the log formats, the type that keeps secrets out of them ([Secret]),
// and every name of a metric or of what is noted of a span. It promises that a
// secret shows as "[secret]" wherever it is printed, logged or marshalled, that
// counting a call costs well under a microsecond and no allocation once its tool
// was seen, that the number of time series stays bounded whatever names come in,
// that traces which nobody wants cost a comparison and no allocation, and that a
// collector which is away or slow neither delays nor fails a call.
//
// It refuses a global logger, the global metrics registry and a global tracer:
// all are made here and passed on.
package telemetry
