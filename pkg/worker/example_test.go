package worker_test

import (
	"context"
	"errors"
	"fmt"
	"log"

	"github.com/callyard/callyard/pkg/worker"
)

type Price struct {
	SKU      string `json:"sku" jsonschema:"article number"`
	Quantity int    `json:"quantity,omitempty"`
}

type Offer struct {
	Total float64 `json:"total"`
}

// A function with Go types becomes a tool. Local runs a complete fabric in this process, here with
// one server.
func ExampleLocal() {
	prices := worker.NewServer("prices")
	worker.Tool(prices, "quote", "Returns the price of an article.", func(_ context.Context, p Price) (Offer, error) {
		return Offer{Total: 2.5 * float64(p.Quantity)}, nil
	}, worker.ReadOnly())

	f, err := worker.Local(prices)
	if err != nil {
		log.Fatal(err)
	}
	defer f.Close()
	result, err := f.Call(context.Background(), "prices", "quote", Price{SKU: "a", Quantity: 4})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(string(result.Body))
	// Output: {"content":[{"type":"text","text":"{\"total\":10}"}],"structuredContent":{"total":10}}
}

// A call that is held by the policy or the risk level has not run. Confirm it with its token.
func ExampleFabric_Confirm() {
	bank := worker.NewServer("bank", worker.RiskLevel(2))
	worker.Tool(bank, "pay", "Pays.", func(context.Context, struct{}) (string, error) { return "paid", nil })
	f, err := worker.Local(bank)
	if err != nil {
		log.Fatal(err)
	}
	defer f.Close()
	_, err = f.Call(context.Background(), "bank", "pay", nil)
	var held *worker.HeldError
	if !errors.As(err, &held) {
		log.Fatal(err)
	}
	fmt.Println(held)
	result, err := f.Confirm(context.Background(), held.Token, true)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(string(result.Body))
	// Output:
	// the call of pay on bank needs an approval and has not run
	// {"content":[{"type":"text","text":"paid"}]}
}

// A worker joins the fleet of a NATS server, and drains when the process receives SIGTERM.
func ExampleNew() {
	w := worker.New("nats://127.0.0.1:4222", worker.Name("pricing"))
	worker.Tool(w.Server("prices"), "quote", "Returns the price of an article.", func(_ context.Context, p Price) (Offer, error) {
		return Offer{Total: 2.5 * float64(p.Quantity)}, nil
	}, worker.ReadOnly())
	if err := w.Run(context.Background()); err != nil {
		log.Fatal(err)
	}
}
