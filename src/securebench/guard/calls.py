"""System call numbers of the machines the seal knows, and what becomes of each call."""

from __future__ import annotations

COMMON = {
    "pidfd_send_signal": 424, "io_uring_setup": 425, "io_uring_enter": 426, "io_uring_register": 427,
    "open_tree": 428, "move_mount": 429, "fsopen": 430, "fsconfig": 431, "fsmount": 432, "fspick": 433,
    "pidfd_open": 434, "clone3": 435, "pidfd_getfd": 438, "process_madvise": 440, "mount_setattr": 442,
    "quotactl_fd": 443, "memfd_secret": 447, "process_mrelease": 448, "statmount": 457, "listmount": 458,
    "open_tree_attr": 467,
}  # fmt: skip

X86_64 = {
    **COMMON,
    "ioctl": 16, "socket": 41, "socketpair": 53, "clone": 56, "fork": 57, "vfork": 58, "execve": 59, "kill": 62,
    "ptrace": 101, "syslog": 103, "setpgid": 109, "setsid": 112, "rt_sigqueueinfo": 129, "mknod": 133, "uselib": 134,
    "personality": 135, "modify_ldt": 154, "pivot_root": 155, "prctl": 157, "adjtimex": 159, "setrlimit": 160,
    "chroot": 161, "acct": 163, "settimeofday": 164, "mount": 165, "umount2": 166, "swapon": 167, "swapoff": 168,
    "reboot": 169, "sethostname": 170, "setdomainname": 171, "iopl": 172, "ioperm": 173, "init_module": 175,
    "delete_module": 176, "quotactl": 179, "tkill": 200, "lookup_dcookie": 212, "clock_settime": 227, "tgkill": 234,
    "mq_open": 240, "kexec_load": 246, "add_key": 248, "request_key": 249, "keyctl": 250, "migrate_pages": 256,
    "mknodat": 259, "unshare": 272, "move_pages": 279, "rt_tgsigqueueinfo": 297, "perf_event_open": 298,
    "fanotify_init": 300, "prlimit64": 302, "name_to_handle_at": 303, "open_by_handle_at": 304, "clock_adjtime": 305,
    "setns": 308, "process_vm_readv": 310, "process_vm_writev": 311, "kcmp": 312, "finit_module": 313,
    "memfd_create": 319, "kexec_file_load": 320, "bpf": 321, "execveat": 322, "userfaultfd": 323,
    "shmget": 29, "semget": 64, "msgget": 68,
}  # fmt: skip

AARCH64 = {
    **COMMON,
    "lookup_dcookie": 18, "ioctl": 29, "mknodat": 33, "umount2": 39, "mount": 40, "pivot_root": 41, "chroot": 51,
    "quotactl": 60, "acct": 89, "personality": 92, "unshare": 97, "kexec_load": 104, "init_module": 105,
    "delete_module": 106, "clock_settime": 112, "syslog": 116, "ptrace": 117, "kill": 129, "tkill": 130,
    "tgkill": 131, "rt_sigqueueinfo": 138, "reboot": 142, "setpgid": 154, "setsid": 157, "sethostname": 161,
    "setdomainname": 162, "setrlimit": 164, "prctl": 167, "settimeofday": 170, "adjtimex": 171, "mq_open": 180,
    "msgget": 186, "semget": 190, "shmget": 194, "socket": 198, "socketpair": 199, "add_key": 217,
    "request_key": 218, "keyctl": 219, "clone": 220, "execve": 221, "swapon": 224, "swapoff": 225,
    "migrate_pages": 238, "move_pages": 239, "rt_tgsigqueueinfo": 240, "perf_event_open": 241, "prlimit64": 261,
    "fanotify_init": 262, "name_to_handle_at": 264, "open_by_handle_at": 265, "clock_adjtime": 266, "setns": 268,
    "process_vm_readv": 270, "process_vm_writev": 271, "kcmp": 272, "finit_module": 273, "memfd_create": 279,
    "bpf": 280, "execveat": 281, "userfaultfd": 282, "kexec_file_load": 294,
}  # fmt: skip

MACHINES = {"x86_64": (0xC000003E, X86_64, 317), "aarch64": (0xC00000B7, AARCH64, 277)}
"""Audit number, call numbers, and the number of seccomp itself."""

ALWAYS_DENIED = (
    "ptrace", "process_vm_readv", "process_vm_writev", "kcmp", "pidfd_open", "pidfd_getfd", "process_madvise",
    "process_mrelease", "perf_event_open", "bpf", "userfaultfd", "add_key", "request_key", "keyctl", "memfd_secret",
    "fanotify_init", "syslog", "quotactl", "quotactl_fd", "lookup_dcookie", "uselib", "migrate_pages", "move_pages",
    "init_module", "finit_module", "delete_module", "kexec_load", "kexec_file_load", "reboot", "swapon", "swapoff",
    "acct", "settimeofday", "clock_settime", "adjtimex", "clock_adjtime", "iopl", "ioperm", "modify_ldt",
    "sethostname", "setdomainname", "mount", "umount2", "pivot_root", "chroot", "setns", "unshare", "open_tree",
    "open_tree_attr", "move_mount", "fsopen", "fsconfig", "fsmount", "fspick", "mount_setattr", "statmount",
    "listmount", "name_to_handle_at", "open_by_handle_at", "mknod", "mknodat", "memfd_create", "shmget", "semget",
    "msgget", "mq_open", "personality",
)  # fmt: skip
ABSENT = ("clone3", "io_uring_setup", "io_uring_enter", "io_uring_register")
"""ENOSYS, so that callers fall back to what can be judged."""

PROCESS = ("execve", "execveat", "fork", "vfork", "setsid", "setpgid")
SIGNALS = ("tkill", "rt_sigqueueinfo", "rt_tgsigqueueinfo", "pidfd_send_signal")
AMOUNTS = ("setrlimit",)
