// Package telemetry provides the log, the metrics and the traces of a process.
//
// It defines the log formats, the type that keeps secrets out of them ([Secret]), and the names of
// all metrics and span attributes. A secret prints, logs and marshals as "[secret]". Counting a call
// takes well under a microsecond and does not allocate after the first call of its tool. The number
// of time series is limited, whatever names occur. Disabled traces cost one comparison and no
// allocation, and a collector that is down or slow neither delays nor fails a call.
//
// There is no global logger, metrics registry or tracer. They are created here and passed on.
package telemetry
