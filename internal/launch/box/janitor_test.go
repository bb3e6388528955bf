package box

import "testing"

func TestTheJanitorLeavesWhatIsBeingMade(t *testing.T) {
	e := engine(t)
	s := spec(t, e)
	over, ended := make(chan struct{}), make(chan struct{})
	go func() { // an engine that is slow gives it as many looks while it makes one
		defer close(ended)
		var suspects map[string]bool
		for {
			select {
			case <-over:
				return
			default:
			}
			var err error
			if suspects, err = e.tidy(t.Context(), nil, suspects); err != nil {
				t.Error(err)
				return
			}
		}
	}()
	for range 10 {
		c, err := e.Start(t.Context(), s)
		if err != nil {
			t.Errorf("a start beside the janitor: %v", err)
			continue
		}
		opened(t, c)
		c.Stop(0)
	}
	close(over)
	<-ended
}
