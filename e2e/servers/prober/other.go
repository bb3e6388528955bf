//go:build !linux

package main

func main() {} // a box is Linux
