// Command native is the example of the published benchmark that turns a function into a tool.
package main

import (
	"context"
	"log"

	"github.com/callyard/callyard/pkg/worker"
)

type pair struct{ A, B float64 }

func add(_ context.Context, p pair) (float64, error) { return p.A + p.B, nil }

func main() {
	w := worker.New("nats://127.0.0.1:4222")
	worker.Tool(w.Server("math"), "add", "Adds two numbers.", add)
	if err := w.Run(context.Background()); err != nil {
		log.Fatal(err)
	}
}
