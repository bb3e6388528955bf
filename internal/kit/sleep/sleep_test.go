package sleep

import (
	"testing"
	"testing/synctest"
	"time"
)

func TestSleepEndsAfterItsDurationOrWhenDoneCloses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		if !For(time.Hour, nil) || time.Since(began) != time.Hour {
			t.Errorf("it lasted %s", time.Since(began))
		}
		done := make(chan struct{})
		close(done)
		if For(time.Hour, done) || time.Since(began) != time.Hour {
			t.Errorf("it lasted %s", time.Since(began))
		}
	})
}
