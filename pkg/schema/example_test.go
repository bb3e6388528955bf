package schema_test

import (
	"errors"
	"fmt"

	"github.com/callyard/callyard/pkg/schema"
)

// A held call may run after its approval. A denied call never runs.
func ExampleState_MayBecome() {
	fmt.Println(schema.StateHeld.MayBecome(schema.StateQueued))
	fmt.Println(schema.StateDenied.MayBecome(schema.StateRunning))
	fmt.Println(schema.StateUnknown.Ended())
	// Output:
	// true
	// false
	// true
}

// Every error has a kind, which is the same in every process, and a detail for the caller.
func ExampleErrorf() {
	err := fmt.Errorf("calling bank/pay: %w", schema.Errorf(schema.KindDisabled, "The tool %q is switched off; ask the operator.", "pay"))

	fmt.Println(schema.KindOf(err))
	if refusal := (*schema.Error)(nil); errors.As(err, &refusal) {
		fmt.Println(refusal.Detail)
		fmt.Println("send it again:", refusal.Retryable)
	}
	// Output:
	// tool-disabled
	// The tool "pay" is switched off; ask the operator.
	// send it again: false
}

// An id contains its creation time.
func ExampleIDTime() {
	_, known := schema.IDTime(string(schema.NewCallID()))
	fmt.Println(known)
	_, known = schema.IDTime("no id")
	fmt.Println(known)
	// Output:
	// true
	// false
}
