package batchfile_test

import (
	"context"
	"fmt"
	"log"
	"os"

	callyard "github.com/callyard/callyard/clients/go"
	"github.com/callyard/callyard/clients/go/batchfile"
)

// If the program is restarted, it continues where the last run stopped.
func Example() {
	address := os.Getenv("CALLYARD_URL")
	client, err := callyard.New(address, os.Getenv("CALLYARD_KEY"), callyard.WithRetries(0))
	if err != nil {
		log.Fatal(err)
	}
	job := batchfile.New(batchfile.Options{Client: client, Address: address, Calls: "calls.ndjson", Results: "results.ndjson"})
	report, err := job.Run(context.Background())
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(report.Batch.State, report.Progress.Results.Succeeded)
}
