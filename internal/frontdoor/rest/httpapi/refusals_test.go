package httpapi

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/callyard/callyard/pkg/schema"
)

func TestRecordsOfRefusedActionsAreRateLimited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRefusals()
		ann, ben := &schema.Principal{Name: "ann"}, &schema.Principal{Name: "ben"}
		for i := range refusalsBurst {
			if err := r.record(ann); err != nil {
				t.Fatal(i, err)
			}
		}
		if err := r.record(ann); schema.KindOf(err) != schema.KindQuota || schema.AsError(err).RetryAfter != time.Second {
			t.Error(err)
		}
		if err := r.record(ben); err != nil {
			t.Error(err)
		}
		time.Sleep(refusalsEvery)
		if err := r.record(ann); err != nil {
			t.Error(err)
		}
	})
}
