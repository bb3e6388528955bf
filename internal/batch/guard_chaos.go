//go:build chaos

package batch

// intents is off: this build runs calls twice when a front door dies.
const intents = false
