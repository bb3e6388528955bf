// Package telemetry makes what the outside sees of a process: its log and its
// metrics.
//
// It owns the log formats, the type that keeps secrets out of them ([Secret]),
// and every metric name. It promises that a secret shows as "[secret]" wherever
// it is printed, logged or marshalled, that counting a call costs well under a
// microsecond and no allocation once its tool was seen, and that the number of
// time series stays bounded whatever names come in.
//
// It refuses a global logger and the global metrics registry: both are made
// here and passed on.
package telemetry
