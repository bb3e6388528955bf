//go:build !chaos

package batch

// intents says that what is not safe to repeat has its intent written before it
// leaves. The fault campaigns (e2e/chaos) also run a build without, to see that
// they notice.
const intents = true
