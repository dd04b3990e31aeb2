package configsrc

// LockFolder says that a write is under way.
var LockFolder = lockFolder

// OSDisk is the disk that writes use where no other is given.
type OSDisk = osDisk
