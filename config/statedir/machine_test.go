package statedir

import "testing"

// TestInstanceIDOnAnotherMachine keeps file and inode and changes the machine, as a cloned disk does.
func TestInstanceIDOnAnotherMachine(t *testing.T) {
	dir := t.TempDir()
	first, err := instanceID(dir, "machine one")
	if err != nil {
		t.Fatal(err)
	}
	if other, err := instanceID(dir, "machine two"); err != nil || other == first {
		t.Errorf("%s on both machines, %v", other, err)
	}
	if id := machineID(); id != machineID() || len(id) != 32 {
		t.Error("the machine's id does not last")
	}
}
