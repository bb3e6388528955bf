package slack

import "time"

// RaiseTimeouts gives requests more time than Slack does, because a machine that runs many tests can
// stand still for seconds.
func RaiseTimeouts() {
	postFor, updateFor, storeFor, takeFor = 20*time.Second, 20*time.Second, 20*time.Second, 20*time.Second
	holdFor = postFor + 2*time.Second
}
