/* fakes/vulkan/execute.c: executes recorded commands. With `reorder` in the script, commands without a barrier
 * between them run in the opposite order, as they may on hardware, so a missing barrier produces wrong bytes. */
#include "fake.h"

#include <string.h>
#include <unistd.h>

static bool is_usable_locked(fake_buffer *buffer, uint32_t family)
{
    if (buffer->object.dead || !buffer->memory || buffer->memory->object.dead) {
        fake_violation("vkQueueSubmit: a buffer that was destroyed, or has no memory");
        return false;
    }
    if (buffer->concurrent) {
        if (!(buffer->families >> family & 1)) {
            fake_violation("vkQueueSubmit: a CONCURRENT buffer is used on family %u, which it does not name", family);
        }
        return true;
    }
    if (buffer->owner != OWNER_NONE && buffer->owner != (int)family) {
        fake_violation("vkQueueSubmit: an EXCLUSIVE buffer of family %d is used on family %u", buffer->owner, family);
    }
    buffer->owner = (int)family;
    return true;
}

bool fake_may_execute_locked(fake_command *command, uint32_t family)
{
    switch (command->what) {
    case COPY:
        return is_usable_locked(command->from, family) && is_usable_locked(command->to, family);
    case FILL:
        return is_usable_locked(command->to, family);
    case TRANSFER_OWNER:
        /* After the release barrier no family owns the buffer. The acquire barrier makes its family the owner. */
        command->to->owner = command->to_family == (int)family ? (int)family : OWNER_NONE;
        return !command->to->object.dead;
    case TIMESTAMP:
        return !command->pool->object.dead;
    case DISPATCH:
        return fake_may_launch_locked(command->launch, family, is_usable_locked);
    default:
        return true;
    }
}

static unsigned char *bytes_of(const fake_buffer *buffer, VkDeviceSize offset)
{
    return buffer->memory->device_bytes + buffer->memory_offset + offset;
}

static void write_timestamp(fake_command *command, uint32_t family)
{
    const uint32_t bits = fake_get_script()->families[family].timestampValidBits;
    pthread_mutex_lock(&fake_lock);
    struct fake_query *query = &command->pool->queries[command->query];
    if (query->state != QUERY_RESET) {
        fake_violation("vkCmdWriteTimestamp: query %u was not reset before", command->query);
    }
    query->state = QUERY_WRITTEN;
    query->value = fake_now_ns() & (bits >= 64 ? UINT64_MAX : (UINT64_C(1) << bits) - 1);
    pthread_mutex_unlock(&fake_lock);
}

static void run(fake_command *command, uint32_t family, VkDeviceSize bytes)
{
    VkDeviceSize slow_us;
    switch (command->what) {
    case COPY:
        slow_us = fake_get_script()->slow_us + (fake_get_script()->slow_us_per_mib * bytes >> 20);
        if (slow_us) {
            usleep((useconds_t)slow_us);
        }
        memcpy(bytes_of(command->to, command->to_offset), bytes_of(command->from, command->from_offset), (size_t)bytes);
        break;
    case FILL:
        for (VkDeviceSize offset = 0; offset + 4 <= bytes; offset += 4) {
            memcpy(bytes_of(command->to, command->to_offset + offset), &command->data, 4);
        }
        break;
    case TIMESTAMP:
        write_timestamp(command, family);
        break;
    case DISPATCH:
        fake_run_launch(command->launch);
        break;
    default:
        break;
    }
}

static bool moves_bytes(const fake_command *command)
{
    return command->what == COPY || command->what == FILL || command->what == DISPATCH;
}

static VkPipelineStageFlags last_stage(const fake_command *command)
{
    return command->what == DISPATCH ? VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT : VK_PIPELINE_STAGE_TRANSFER_BIT;
}

static VkPipelineStageFlags first_stage(const fake_command *command)
{
    const bool indirect = command->what == DISPATCH && command->launch->indirect;
    return indirect ? VK_PIPELINE_STAGE_DRAW_INDIRECT_BIT : last_stage(command);
}

/* Returns whether the command is a barrier that does not order all earlier commands, which end with the stages
 * @p earlier, before the next command that moves bytes. */
static bool passes_by(fake_command *const *command, fake_command *const *end, VkPipelineStageFlags earlier)
{
    const fake_command *barrier = *command;
    while (command < end && (*command)->what == BARRIER) {
        command++;
    }
    if (barrier->what != BARRIER || command == end || !moves_bytes(*command)) {
        return false;
    }
    const VkPipelineStageFlags all = VK_PIPELINE_STAGE_ALL_COMMANDS_BIT;
    return (!(barrier->earlier & all) && (barrier->earlier & earlier) != earlier) ||
           !(barrier->later & (all | first_stage(*command)));
}

/* Lists the commands of all command buffers. Returns NULL if out of memory. Owner: caller, free(). */
static fake_command **list_commands(fake_command_buffer *const *buffers, uint32_t count, uint32_t *out_count)
{
    uint32_t total = 0;
    for (uint32_t b = 0; b < count; b++) {
        total += buffers[b]->count;
    }
    fake_command **list = malloc((total + 1) * sizeof *list);
    *out_count = 0;
    for (uint32_t b = 0; b < count && list; b++) {
        for (uint32_t c = 0; c < buffers[b]->count; c++) {
            list[(*out_count)++] = &buffers[b]->commands[c];
        }
    }
    return list;
}

/* Only barriers order commands, also those of different command buffers. */
void fake_execute(fake_command_buffer *const *buffers, uint32_t count, bool stop_halfway)
{
    const uint32_t family = count > 0 ? buffers[0]->pool->family : 0;
    uint32_t total = 0;
    fake_command **all = list_commands(buffers, count, &total);
    const uint32_t end = stop_halfway ? (total + 1) / 2 : total;
    for (uint32_t begin = 0, next = 0; begin < end; begin = next) {
        next = begin + 1;
        VkPipelineStageFlags stages = last_stage(all[begin]);
        while (fake_get_script()->reorder && next < end && moves_bytes(all[begin]) &&
               (moves_bytes(all[next]) || passes_by(&all[next], &all[end], stages))) {
            stages |= moves_bytes(all[next]) ? last_stage(all[next]) : 0;
            next++;
        }
        for (uint32_t c = next; c-- > begin;) {
            run(all[c], family, stop_halfway && next == end ? all[c]->bytes / 2 : all[c]->bytes);
        }
    }
    free(all);
}
