// Package worker is Callyard's SDK for Go. It serves Go functions and existing MCP servers as
// tools.
//
// A program with a [Worker] joins a fleet over NATS, like any other worker:
//
//	w := worker.New("nats://127.0.0.1:4222", worker.Name("pricing"))
//	prices := w.Server("prices")
//	worker.Tool(prices, "quote", "Returns the price of an article.", quote, worker.ReadOnly())
//	err := w.Run(context.Background()) // until SIGTERM, then drains
//
// Its tools have the same gate, policy, approvals, records, limits, progress and
// cancellation as tools of other servers. Calls reach the functions without JSON-RPC.
//
// [Local] runs a complete fabric inside the program: a front door, a worker and an embedded
// NATS server. Tests, and programs that use Callyard as a library, call tools through it.
//
// Registration errors, such as a type that JSON cannot encode or a duplicate tool name, are
// collected and returned by [Worker.Run] and [Local].
package worker
