package approval_test

import (
	"testing"

	"github.com/callyard/callyard/pkg/bus/bustest"
)

// Every front door and approver looks at all waiting calls each second.
func TestReconcileAllocatesLittlePerWaitingCall(t *testing.T) {
	r := open(t, bustest.Start(t), nil)
	const waiting = 200
	for range waiting {
		r.hold(byOperators(1))
	}
	n := testing.AllocsPerRun(10, func() {
		if changed, err := r.desk.Reconcile(t.Context(), func(string) bool { return true }); changed != 0 || err != nil {
			t.Fatal(changed, err)
		}
	})
	if n > waiting {
		t.Errorf("%.0f allocations for %d waiting calls", n, waiting)
	}
}
