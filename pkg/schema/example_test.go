package schema_test

import (
	"errors"
	"fmt"

	"github.com/callyard/callyard/pkg/schema"
)

// A call that waits for an approval may run once it is approved. One that was denied
// stays denied.
func ExampleState_MayBecome() {
	fmt.Println(schema.StateHeld.MayBecome(schema.StateQueued))
	fmt.Println(schema.StateDenied.MayBecome(schema.StateRunning))
	fmt.Println(schema.StateUnknown.Ended())
	// Output:
	// true
	// false
	// true
}

// Every failure has a kind, which crosses processes, and a sentence for the caller.
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

// An id tells when it was made.
func ExampleIDTime() {
	_, known := schema.IDTime(string(schema.NewCallID()))
	fmt.Println(known)
	_, known = schema.IDTime("no id")
	fmt.Println(known)
	// Output:
	// true
	// false
}
