/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A guest of a few lines for KVM: one virtual CPU in 16-bit mode writes an MSR, writes a port, asks CPUID and
 * halts, over and over, so that each of them exits.
 *
 *   kvm_guest SECONDS
 */
#include <err.h>
#include <fcntl.h>
#include <linux/kvm.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <time.h>

#define MEMORY 0x10000
#define START 0x1000

static const uint8_t code[] = {
	0x66, 0xb9, 0x15, 0x00, 0x01, 0xc0, /* mov ecx, 0xc0010015: HWCR, which KVM emulates */
	0x66, 0x31, 0xc0, /* xor eax, eax */
	0x66, 0x31, 0xd2, /* xor edx, edx */
	0x0f, 0x30, /* wrmsr */
	0x0f, 0x30, /* wrmsr */
	0xe6, 0x10, /* out 0x10, al */
	0x0f, 0xa2, /* cpuid */
	0xf4, /* hlt */
	0xeb, 0xe9, /* jmp to the start */
};

static struct kvm_run *run;

static int
make_vcpu(void)
{
	int kvm = open("/dev/kvm", O_RDWR), vm, vcpu;
	struct kvm_userspace_memory_region region = { .memory_size = MEMORY };
	struct kvm_regs regs = { .rip = START, .rflags = 2 };
	struct kvm_sregs sregs;
	uint8_t *memory = mmap(
			NULL, MEMORY, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (kvm < 0 || memory == MAP_FAILED || (vm = ioctl(kvm, KVM_CREATE_VM, 0)) < 0)
		err(1, "/dev/kvm");
	memcpy(memory + START, code, sizeof(code));
	region.userspace_addr = (uintptr_t)memory;
	if (ioctl(vm, KVM_SET_USER_MEMORY_REGION, &region) != 0 ||
			(vcpu = ioctl(vm, KVM_CREATE_VCPU, 0)) < 0)
		err(1, "virtual CPU");
	run = mmap(NULL, (size_t)ioctl(kvm, KVM_GET_VCPU_MMAP_SIZE, 0), PROT_READ | PROT_WRITE,
			MAP_SHARED, vcpu, 0);
	if (run == MAP_FAILED || ioctl(vcpu, KVM_GET_SREGS, &sregs) != 0)
		err(1, "registers");
	sregs.cs.base = 0;
	sregs.cs.selector = 0;
	if (ioctl(vcpu, KVM_SET_SREGS, &sregs) != 0 || ioctl(vcpu, KVM_SET_REGS, &regs) != 0)
		err(1, "registers");
	return vcpu;
}

int
main(int argc, char **argv)
{
	time_t end = time(NULL) + (argc > 1 ? atoi(argv[1]) : 1);
	int vcpu = make_vcpu();

	while (time(NULL) < end) {
		if (ioctl(vcpu, KVM_RUN, 0) != 0)
			err(1, "KVM_RUN");
		if (run->exit_reason != KVM_EXIT_IO && run->exit_reason != KVM_EXIT_HLT)
			errx(1, "exit reason %u", run->exit_reason);
	}
	return 0;
}
